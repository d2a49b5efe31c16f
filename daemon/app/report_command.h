// `isthmus report`: what a run does round by round and what it came to, from a coordinator or a file of JSON.
#ifndef ISTHMUS_DAEMON_APP_REPORT_COMMAND_H_
#define ISTHMUS_DAEMON_APP_REPORT_COMMAND_H_

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

struct ReportOptions {
  std::string url;         // exactly one of url and json_in
  std::string json_in;     // a file as `isthmus status --json` or json_out wrote it
  bool is_follow = false;  // print rounds as they are committed, until the run is finished
  std::string svg_out;     // the loss curve
  std::string json_out;    // the status the report was made from
  int64_t min_rounds = 0;
  double max_held_out_loss = 0;  // 0: not asked for
  absl::Duration give_up_after = absl::Seconds(30);
  bool is_insecure = false;

  bool has_criteria() const { return min_rounds > 0 || max_held_out_loss > 0; }
};

// Parsed options go to `run`, whose value is the exit code.
void AddReportCommand(CommandLine* line, std::function<int(const ReportOptions&)> run);

// A line for each committed round, then the summary; files as asked for. `client` is the coordinator at the
// URL, or null with json_in. INVALID_ARGUMENT: neither or both sources, or an unreadable file; ABORTED: a
// criterion is not met, all of them named; else as FollowStatus.
absl::Status Report(const ReportOptions& options, const StatusWatch& watch, const Clock& clock,
                    std::ostream& out, std::ostream& error);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_REPORT_COMMAND_H_
