// Asks gRPC's health service, as a load balancer or an orchestrator would.
#ifndef ISTHMUS_DAEMON_RPC_HEALTH_PROBE_H_
#define ISTHMUS_DAEMON_RPC_HEALTH_PROBE_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/exchange/url.h"

namespace isthmus {

// Whether the server at `address` says SERVING of itself. Blocks; UNAVAILABLE or DEADLINE_EXCEEDED when
// nobody answers within `timeout`. Plain text.
absl::StatusOr<bool> IsServing(const HostPort& address, absl::Duration timeout);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_RPC_HEALTH_PROBE_H_
