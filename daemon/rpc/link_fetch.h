// One blob's way down over gRPC: attempts, pieces, resume.
#ifndef ISTHMUS_DAEMON_RPC_LINK_FETCH_H_
#define ISTHMUS_DAEMON_RPC_LINK_FETCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/exchange/transfer.h"
#include "daemon/exchange/transport.h"
#include "daemon/rpc/link_core.h"
#include "protos/service.grpc.pb.h"

namespace isthmus {

class FetchCall;

class LinkFetch : public Transfer {
 public:
  // `core` is shared by the link and its calls; `stub` (the link's) must outlive this. `finish` may destroy
  // it.
  LinkFetch(std::shared_ptr<LinkCore> core, Isthmus::Stub* stub, FetchRequest request, absl::Time deadline,
            std::function<void(absl::StatusOr<std::string>)> finish);
  ~LinkFetch() override;

 private:
  void BeginAttempt() override;
  void Fail(const absl::Status& why) override { Finish(why); }
  std::string Describe() const override;
  void Abandon() override;
  void PieceArrived(const FetchReply& reply);
  void Ended(const absl::Status& why);
  void Finish(absl::StatusOr<std::string> blob);

  const std::shared_ptr<LinkCore> core_;
  Isthmus::Stub* const stub_;
  FetchRequest request_;
  std::function<void(absl::StatusOr<std::string>)> finish_;
  std::shared_ptr<FetchCall> call_;  // the attempt's; shared with gRPC
  std::string received_;
  int64_t total_bytes_ = -1;  // −1: not yet told
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_RPC_LINK_FETCH_H_
