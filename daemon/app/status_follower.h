// Following a run's status across broken connections, until the follower has seen enough.
#ifndef ISTHMUS_DAEMON_APP_STATUS_FOLLOWER_H_
#define ISTHMUS_DAEMON_APP_STATUS_FOLLOWER_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/exchange/status_client.h"

namespace isthmus {

// Watches until `seen` returns false (then OK). While the coordinator cannot be reached (UNAVAILABLE,
// DEADLINE_EXCEEDED) it tries again with growing pauses; `notice` hears each failure once, by its text. After
// `give_up_after` without a status the last failure is returned. Other errors are returned at once. Blocks.
absl::Status FollowStatus(StatusClient* client, Clock* clock, const StatusRequest& request,
                          absl::Duration give_up_after, const std::function<bool(const RunStatus&)>& seen,
                          const std::function<void(absl::string_view)>& notice);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_STATUS_FOLLOWER_H_
