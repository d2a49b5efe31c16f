// One upload's stream at the hub: offer, pieces, digest.
#ifndef ISTHMUS_DAEMON_RPC_HUB_UPLOAD_H_
#define ISTHMUS_DAEMON_RPC_HUB_UPLOAD_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "daemon/rpc/call_set.h"
#include "daemon/rpc/hub_core.h"

namespace isthmus {

// gRPC's threads post what they read; all else is on the loop, so that nothing here needs a lock. A call that
// comes when the hub has stopped is aborted in the thread that made it, and never reaches the loop.
class HubUpload : public Call,
                  public grpc::ServerBidiReactor<UploadRequest, UploadReply>,
                  public std::enable_shared_from_this<HubUpload> {
 public:
  // `core` is shared by the hub and its calls.
  HubUpload(std::shared_ptr<HubCore> core, grpc::CallbackServerContext* context)
      : core_(std::move(core)), context_(context) {}

  void Begin();
  void Abort(const absl::Status& why) override;

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  void ReadNext();
  void Received();
  void Offered();
  void TakeWhole();
  void End(const absl::Status& why);
  void Reply(const absl::Status& after);

  const std::shared_ptr<HubCore> core_;
  grpc::CallbackServerContext* const context_;
  UploadRequest incoming_;  // gRPC's between StartRead and OnReadDone
  UploadReply reply_;       // gRPC's between StartWrite and OnWriteDone
  ContributionHeader header_;
  bool is_offered_ = false;
  int64_t attempt_ = 0;  // of the frames held
  bool is_writing_ = false;
  bool is_whole_ = false;  // the last answer waits for the first to be out
  bool is_finished_ = false;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_RPC_HUB_UPLOAD_H_
