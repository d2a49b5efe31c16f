// Seeded schedules of whole runs with faults: which sites, links, settings, and what goes wrong when.
//
// Pure: a seed gives the same schedule on every machine.
#ifndef ISTHMUS_DAEMON_APP_SIM_FAULT_SCHEDULE_H_
#define ISTHMUS_DAEMON_APP_SIM_FAULT_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/app/sim/sim_run.h"
#include "daemon/exchange/fault_plan.h"

namespace isthmus {

// Something that happens to a process or a link, beside the faults of single messages.
struct FaultAct {
  enum class Kind {
    kStartWorker,       // joins, or starts again after a kill
    kKillWorker,        // SIGKILL
    kLeaveWorker,       //
    kKillCoordinator,   // SIGKILL; started again after `length`
    kCrashAfterWrites,  // the coordinator dies right after `count` more durable writes; likewise
    kRefuseWrites,      // the disk refuses for `length`; the coordinator is started again until it works
    kNanInParameters,   // one value of a site's parameters
    kFlippedAnchorBit,  // one bit of a site's anchor
    kBreakSession,      //
    kClog,              // both connections, one way, for `length`
  };
  Kind kind = Kind::kBreakSession;
  absl::Duration at;         // since the start; not before this
  int64_t after_events = 0;  // and this many events later: any event may be the last
  std::string site;
  absl::Duration length;
  int64_t count = 0;  // writes, or a position
  FaultSide side = FaultSide::kUp;
};
std::string DescribeAct(const FaultAct& act);

struct FaultSchedule {
  uint64_t seed = 0;
  SimRunOptions options;
  std::vector<std::string> at_start;    // sites that start at once
  std::vector<Fault> faults;            // all strike before `calm`
  std::vector<FaultAct> acts;           // by time
  std::vector<std::string> stays_away;  // left, and not coming back
  absl::Duration calm;                  // since the start: no fault any more
  absl::Duration patience;              // after `calm`, for the run to finish
  bool has_duplicates = false;          // of control messages
  bool is_exact = false;                // masses must agree to the bit (SimInvariants::Options)
  int64_t unaccounted_resends = 0;      // planted: taken off what the byte budget allows
};

FaultSchedule MakeFaultSchedule(uint64_t seed);

// What it is about, in a few lines.
std::string DescribeSchedule(const FaultSchedule& schedule);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_SIM_FAULT_SCHEDULE_H_
