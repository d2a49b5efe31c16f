// What `auto` means for one run, and how long that run is.
#ifndef ISTHMUS_DAEMON_APP_RUN_RESOLVE_H_
#define ISTHMUS_DAEMON_APP_RUN_RESOLVE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/app/run_traffic.h"
#include "daemon/training/tensor_table.h"
#include "protos/run.pb.h"

namespace isthmus {

struct ResolvedRun {
  TrafficCodecs codecs;
  bool is_dense = false;     // the contributions' codec
  float outer_rate = 1;      // α or η
  float outer_momentum = 0;  // μ; 0 for the PLAIN form
  bool is_nesterov = false;
  int64_t total_rounds = 0;          // given or estimated from the tokens; ≥ 1
  int64_t total_schedule_steps = 0;  // total_rounds · H: what the learning-rate schedule spans
};

// Rounds of a run: total_rounds, or those that `sites` need for total_tokens, whichever comes first. `run`
// has its defaults. At least 1.
int64_t EstimateRounds(const RunFile& run, int64_t sites);

// `sites`: of the first view. INVALID_ARGUMENT when a codec spec is none or not one for its traffic,
// pointing at the character, or when neither end of the run is given.
absl::StatusOr<ResolvedRun> ResolveAuto(const RunFile& run, int64_t sites);

ModelShape ModelShapeOf(const ModelConfig& model);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_RUN_RESOLVE_H_
