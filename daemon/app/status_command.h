// `isthmus status URL`: how a run stands, once or as it goes.
#ifndef ISTHMUS_DAEMON_APP_STATUS_COMMAND_H_
#define ISTHMUS_DAEMON_APP_STATUS_COMMAND_H_

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/app/command_line.h"
#include "daemon/app/status_follower.h"
#include "daemon/base/clock.h"

namespace isthmus {

struct StatusOptions {
  std::string url;
  bool is_watch = false;
  bool is_json = false;
  int64_t commits = 8;
  absl::Duration give_up_after = absl::Seconds(10);
  bool is_insecure = false;
};

// Parsed options go to `run`, whose value is the exit code.
void AddStatusCommand(CommandLine* line, std::function<int(const StatusOptions&)> run);

// Asks through `watch` the coordinator at the options' URL, and prints to `out`: a page, or with is_json one
// object a line. With is_watch it goes on until the run is finished, each page over the one before when
// `is_terminal`. Complaints about the connection go to `error`. Errors as FollowStatus; INVALID_ARGUMENT for
// the URL.
absl::Status ShowStatus(const StatusOptions& options, const StatusWatch& watch, const Clock& clock,
                        bool is_terminal, std::ostream& out, std::ostream& error);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_STATUS_COMMAND_H_
