#include "daemon/app/status_follower.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace isthmus {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(200);
constexpr absl::Duration kLongestPause = absl::Seconds(5);

void Pause(Clock* clock, absl::Time until) {
  absl::Mutex mutex;
  const bool never = false;
  absl::MutexLock lock(&mutex);
  clock->AwaitUntil(&mutex, absl::Condition(&never), until);
}

bool MayRetry(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

absl::Status FollowStatus(StatusClient* client, Clock* clock, const StatusRequest& request,
                          absl::Duration give_up_after, const std::function<bool(const RunStatus&)>& seen,
                          const std::function<void(absl::string_view)>& notice) {
  absl::Time last_heard = clock->SteadyNow();
  absl::Duration pause = kFirstPause;
  std::string last_notice;
  while (true) {
    bool is_done = false;
    const auto see = [&](const RunStatus& status) {
      last_heard = clock->SteadyNow();
      pause = kFirstPause;
      last_notice.clear();
      is_done = !seen(status);
      return !is_done;
    };
    absl::Status status = client->Watch(request, absl::InfiniteFuture(), see);
    if (is_done) return absl::OkStatus();
    // A stream that ended well before we were done was ended by the coordinator.
    if (status.ok()) status = absl::UnavailableError("the coordinator ended the stream");
    const absl::Time now = clock->SteadyNow();
    if (!MayRetry(status) || now - last_heard >= give_up_after) return status;
    const std::string text =
        absl::StrCat(status.message(), "; trying again for ", absl::FormatDuration(give_up_after));
    if (text != last_notice) notice(text);
    last_notice = text;
    Pause(clock, std::min(now + pause, last_heard + give_up_after));
    pause = std::min(2 * pause, kLongestPause);
  }
}

}  // namespace isthmus
