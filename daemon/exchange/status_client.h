// The StatusClient seam: asking a coordinator how its run stands. Real: gRPC (daemon/rpc).
#ifndef ISTHMUS_DAEMON_EXCHANGE_STATUS_CLIENT_H_
#define ISTHMUS_DAEMON_EXCHANGE_STATUS_CLIENT_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "protos/status.pb.h"

namespace isthmus {

// Calls block; one at a time. Deadlines are steady time.
class StatusClient {
 public:
  virtual ~StatusClient() = default;

  // UNAVAILABLE: nobody answers there; DEADLINE_EXCEEDED; NOT_FOUND: another run is kept there, named.
  virtual absl::StatusOr<RunStatus> Get(const StatusRequest& request, absl::Time deadline) = 0;

  // Calls `seen` with each status the coordinator publishes, the present one first, until it returns false
  // (then OK) or the stream breaks (errors as Get). No status for a while is no error before `deadline`.
  virtual absl::Status Watch(const StatusRequest& request, absl::Time deadline,
                             const std::function<bool(const RunStatus&)>& seen) = 0;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_EXCHANGE_STATUS_CLIENT_H_
