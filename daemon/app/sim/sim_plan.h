// `isthmus sim`: runs the real roles on fake time and says how the run went.
#ifndef ISTHMUS_DAEMON_APP_SIM_SIM_PLAN_H_
#define ISTHMUS_DAEMON_APP_SIM_SIM_PLAN_H_

#include <cstdint>
#include <iosfwd>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "protos/sim.pb.h"

namespace isthmus {

// Runs `file` with its seed (or `seed`, unless 0). Errors as SimRunOptionsOf.
absl::StatusOr<SimReport> SimulateRun(const SimFile& file, uint64_t seed);

// Two tables: the run, and its sites.
std::string SimReportTable(const SimReport& report);
// One object on one line.
std::string SimReportJson(const SimReport& report);

// The whole command: reads the file at `path`, runs it, prints. NOT_FOUND, UNAVAILABLE or INVALID_ARGUMENT
// name the file; ABORTED: the run did not finish, or digests differ (the report is printed all the same).
absl::Status RunSimFile(const std::string& path, uint64_t seed, bool is_json, std::ostream& out);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_SIM_SIM_PLAN_H_
