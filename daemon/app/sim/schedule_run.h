// Runs one fault schedule under the invariants.
#ifndef ISTHMUS_DAEMON_APP_SIM_SCHEDULE_RUN_H_
#define ISTHMUS_DAEMON_APP_SIM_SCHEDULE_RUN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/app/sim/fault_schedule.h"
#include "daemon/app/sim/sim_invariants.h"
#include "protos/status.pb.h"

namespace isthmus {

struct ScheduleOutcome {
  std::vector<std::pair<Invariant, std::string>> violations;
  bool is_finished = false;
  int64_t events = 0;
  int64_t strikes = 0;   // of message faults
  int64_t restarts = 0;  // of the coordinator
  absl::Duration took;   // fake time
  RunStatus status;      // at the end, when a coordinator runs
  // All violations, then the line that runs this schedule again.
  std::string Text(uint64_t seed) const;
};

// `trace` (may be null) gets a line for each act. `before` (may be null) sees the run before anything starts.
// Stops at the first violation.
ScheduleOutcome RunSchedule(const FaultSchedule& schedule,
                            const std::function<void(const std::string&)>& trace);

// "bazel run //daemon/app/sim:replay -- --seed=123"
std::string ReplayCommand(uint64_t seed);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_SIM_SCHEDULE_RUN_H_
