#include "daemon/app/status_follower.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace isthmus {
namespace {

bool MayRetry(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

absl::Status FollowStatus(const StatusWatch& watch, const Clock& clock, const StatusRequest& request,
                          absl::Duration give_up_after, const std::function<bool(const RunStatus&)>& seen,
                          const std::function<void(absl::string_view)>& notice) {
  absl::Time last_heard = clock.SteadyNow();
  std::string last_notice;
  absl::Status result;
  const auto see = [&](const RunStatus& status) {
    if (!request.run_name().empty() && status.run_name() != request.run_name()) {
      result = absl::FailedPreconditionError(absl::StrCat("this coordinator keeps run '", status.run_name(),
                                                          "', not '", request.run_name(), "'"));
      return false;
    }
    last_heard = clock.SteadyNow();
    last_notice.clear();
    return seen(status);
  };
  const auto lose = [&](const absl::Status& why) {
    if (!MayRetry(why) || clock.SteadyNow() - last_heard >= give_up_after) {
      result = why;
      return false;
    }
    const std::string text =
        absl::StrCat(why.message(), "; trying again for ", absl::FormatDuration(give_up_after));
    if (text != last_notice) notice(text);
    last_notice = text;
    return true;
  };
  watch(request, see, lose);
  return result;
}

}  // namespace isthmus
