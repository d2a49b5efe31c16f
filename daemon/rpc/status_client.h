// Asks a coordinator for its status, once or again and again: for the command line, so it blocks.
#ifndef ISTHMUS_DAEMON_RPC_STATUS_CLIENT_H_
#define ISTHMUS_DAEMON_RPC_STATUS_CLIENT_H_

#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/exchange/url.h"
#include "daemon/rpc/channel.h"
#include "protos/status.pb.h"

namespace isthmus {

// Thread-safe.
class StatusClient {
 public:
  // `clock` must outlive the client. FAILED_PRECONDITION: not on loopback and not allowed in plain text.
  static absl::StatusOr<std::unique_ptr<StatusClient>> Create(Clock* clock, const HostPort& coordinator,
                                                              const RpcOptions& options);
  ~StatusClient();

  // UNAVAILABLE: nobody answers there; DEADLINE_EXCEEDED: not within `timeout`.
  absl::StatusOr<RunStatus> Ask(const StatusRequest& request, absl::Duration timeout);

  // Calls `seen` with every status that comes. When the stream breaks, calls `lost` and dials again after a
  // while. Returns when either answers false, or after Stop.
  void Watch(const StatusRequest& request, const std::function<bool(const RunStatus&)>& seen,
             const std::function<bool(const absl::Status&)>& lost);

  // Ends Watch, from any thread.
  void Stop();

 private:
  struct Stub;
  StatusClient(Clock* clock, const HostPort& coordinator, const RpcOptions& options);
  // One stream until it ends; OK when `seen` wanted no more.
  absl::Status WatchOnce(const StatusRequest& request, const std::function<bool(const RunStatus&)>& seen,
                         bool* was_seen);

  Clock* const clock_;
  const HostPort coordinator_;
  const std::unique_ptr<Stub> stub_;
  absl::Mutex mutex_;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> cancel_ ABSL_GUARDED_BY(mutex_);  // of the stream under way
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_RPC_STATUS_CLIENT_H_
