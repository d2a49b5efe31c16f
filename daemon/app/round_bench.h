// `isthmus bench round`: what killing and waiting cost a run, measured on real processes on loopback.
//
// Every figure is taken from the coordinator's status; times of kills and starts are the wall clock's of this
// machine, which the coordinator's are too.
#ifndef ISTHMUS_DAEMON_APP_ROUND_BENCH_H_
#define ISTHMUS_DAEMON_APP_ROUND_BENCH_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/app/interrupt_watch.h"
#include "daemon/app/round_bench_report.h"
#include "daemon/app/round_bench_setup.h"
#include "daemon/base/clock.h"

namespace isthmus {

struct RoundBenchOptions {
  std::string program = "/proc/self/exe";
  std::string data;          // text; empty: made up
  int64_t repeats = 10;      // kills of each kind
  int64_t rounds = 40;       // of each run that is watched for waiting or bytes
  std::string part = "all";  // or "worker-kill", "coordinator-kill", "waiting", "bytes"
  BenchShape shape;
  std::function<void(absl::string_view)> progress;  // a line at a time
};

// Starts, watches, kills and ends the processes. CANCELLED: a signal came; else what went wrong in which run.
absl::StatusOr<RoundBenchReport> RunRoundBench(const RoundBenchOptions& options, Clock* clock,
                                               InterruptWatch* watch);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_ROUND_BENCH_H_
