// One worker's session at the hub: messages to and fro on one stream.
#ifndef ISTHMUS_DAEMON_RPC_HUB_SESSION_H_
#define ISTHMUS_DAEMON_RPC_HUB_SESSION_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/rpc/call_set.h"
#include "daemon/rpc/hub_core.h"

namespace isthmus {

// Made in gRPC's thread; the mutex guards what both threads reach: the queue going out and whether it is
// over.
class HubSession : public Call,
                   public grpc::ServerBidiReactor<WorkerMessage, CoordinatorMessage>,
                   public std::enable_shared_from_this<HubSession> {
 public:
  // `core` is shared by the hub and its calls.
  HubSession(std::shared_ptr<HubCore> core, grpc::CallbackServerContext* context)
      : core_(std::move(core)), context_(context) {}

  // Announces the session on the loop and begins to read. After it is in the call set.
  void Begin();

  // Queues a message; dropped when the session is ending. A peer that lets the queue grow without end is cut
  // off.
  void Send(const CoordinatorMessage& message);

  void Wind(const absl::Status& why) override;
  void Abort(const absl::Status& why) override;

  // On the loop: nothing more is told of this session but its end.
  void Mute() { is_muted_ = true; }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  void Receive(const std::shared_ptr<WorkerMessage>& message);
  void FinishLocked(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<HubCore> core_;
  grpc::CallbackServerContext* const context_;  // gRPC's, until OnDone returns
  SessionId id_ = 0;                            // the loop's
  bool is_muted_ = false;                       // the loop's
  WorkerMessage incoming_;                      // gRPC's between StartRead and OnReadDone

  absl::Mutex mutex_;
  std::deque<CoordinatorMessage> queue_ ABSL_GUARDED_BY(mutex_);  // the front is being written
  int64_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_winding_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status winding_ ABSL_GUARDED_BY(mutex_);
  bool is_finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status finished_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_RPC_HUB_SESSION_H_
