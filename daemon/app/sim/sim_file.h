// Reading what `isthmus sim` is given, and making a simulated run of it.
#ifndef ISTHMUS_DAEMON_APP_SIM_SIM_FILE_H_
#define ISTHMUS_DAEMON_APP_SIM_SIM_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/app/sim/sim_run.h"
#include "protos/sim.pb.h"

namespace isthmus {

// INVALID_ARGUMENT: "NAME:3:5: …", a line for each mistake of form, or the field whose number is impossible.
absl::StatusOr<SimFile> ParseSimFile(absl::string_view text, const std::string& name);

// `seed` 0: the file's. INVALID_ARGUMENT: a codec spec that is none, pointing at the character.
absl::StatusOr<SimRunOptions> SimRunOptionsOf(const SimFile& file, uint64_t seed);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_SIM_SIM_FILE_H_
