// One frame's way up over gRPC: attempts, pieces at the budget's pace, resume.
#ifndef ISTHMUS_DAEMON_RPC_LINK_UPLOAD_H_
#define ISTHMUS_DAEMON_RPC_LINK_UPLOAD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "daemon/exchange/pacer.h"
#include "daemon/exchange/transfer.h"
#include "daemon/exchange/transport.h"
#include "daemon/rpc/link_core.h"
#include "protos/service.grpc.pb.h"

namespace isthmus {

class UploadCall;

class LinkUpload : public Transfer {
 public:
  // `core` is shared by the link and its calls; `stub` and `pacer` (the link's) must outlive this. `finish`
  // may destroy it.
  LinkUpload(std::shared_ptr<LinkCore> core, Isthmus::Stub* stub, Pacer* pacer,
             const ContributionHeader& header, SharedBytes frame, absl::Time deadline,
             std::function<void(absl::Status)> finish);
  ~LinkUpload() override;

 private:
  void BeginAttempt() override;
  void Fail(const absl::Status& why) override { Finish(why); }
  std::string Describe() const override;
  void Abandon() override;
  void Replied(const UploadReply& reply);
  void SendNext();
  void Ended(const absl::Status& why);
  void Finish(const absl::Status& status);

  const std::shared_ptr<LinkCore> core_;
  Isthmus::Stub* const stub_;
  Pacer* const pacer_;
  const ContributionHeader header_;
  const SharedBytes frame_;
  std::function<void(absl::Status)> finish_;
  std::shared_ptr<UploadCall> call_;  // the attempt's; shared with gRPC
  bool is_writing_ = false;
  int64_t sent_bytes_ = -1;  // −1: the hub has not yet said what it holds
  int data_losses_ = 0;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_RPC_LINK_UPLOAD_H_
