// Status for people and their tools: one answer, or the newest whenever it changes.
#ifndef ISTHMUS_DAEMON_RPC_HUB_STATUS_H_
#define ISTHMUS_DAEMON_RPC_HUB_STATUS_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "daemon/rpc/call_set.h"
#include "daemon/rpc/hub_core.h"

namespace isthmus {

// Threads as HubUpload.
class HubStatus : public Call,
                  public grpc::ServerUnaryReactor,
                  public std::enable_shared_from_this<HubStatus> {
 public:
  // `core` is shared by the hub and its calls; `answer` is gRPC's until OnDone.
  HubStatus(std::shared_ptr<HubCore> core, const StatusRequest& request, RunStatus* answer)
      : core_(std::move(core)), request_(request), answer_(answer) {}

  void Begin();
  void Abort(const absl::Status& why) override;
  void OnDone() override;

 private:
  const std::shared_ptr<HubCore> core_;
  const StatusRequest request_;
  RunStatus* const answer_;
  bool is_finished_ = false;
};

// A watcher that reads slowly misses statuses in between, never the newest.
class HubWatch : public Call,
                 public grpc::ServerWriteReactor<RunStatus>,
                 public std::enable_shared_from_this<HubWatch> {
 public:
  // `core` is shared by the hub and its calls.
  HubWatch(std::shared_ptr<HubCore> core, grpc::CallbackServerContext* context, const StatusRequest& request)
      : core_(std::move(core)), context_(context), request_(request) {}

  void Begin();
  // On the loop.
  void Publish(const RunStatus& status);
  void Abort(const absl::Status& why) override;

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  const std::shared_ptr<HubCore> core_;
  grpc::CallbackServerContext* const context_;
  const StatusRequest request_;
  RunStatus writing_;  // gRPC's between StartWrite and OnWriteDone
  RunStatus newest_;
  bool has_newer_ = false;
  bool is_writing_ = false;
  bool is_finished_ = false;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_RPC_HUB_STATUS_H_
