// Following a run's status across broken connections, until the follower has seen enough.
#ifndef ISTHMUS_DAEMON_APP_STATUS_FOLLOWER_H_
#define ISTHMUS_DAEMON_APP_STATUS_FOLLOWER_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "protos/status.pb.h"

namespace isthmus {

// Blocks and calls `seen` with every status that comes; when the stream breaks, calls `lost` and dials again
// after a while; returns when either answers false (StatusClient::Watch of daemon/rpc).
using StatusWatch =
    std::function<void(const StatusRequest& request, const std::function<bool(const RunStatus&)>& seen,
                       const std::function<bool(const absl::Status&)>& lost)>;

// Watches until `seen` returns false (then OK). While the coordinator cannot be reached (UNAVAILABLE,
// DEADLINE_EXCEEDED) it goes on, and `notice` hears each new failure once, by its text. The last failure is
// returned once `give_up_after` has passed without a status; any other error at once. FAILED_PRECONDITION:
// the coordinator keeps another run than the request names.
absl::Status FollowStatus(const StatusWatch& watch, const Clock& clock, const StatusRequest& request,
                          absl::Duration give_up_after, const std::function<bool(const RunStatus&)>& seen,
                          const std::function<void(absl::string_view)>& notice);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_STATUS_FOLLOWER_H_
