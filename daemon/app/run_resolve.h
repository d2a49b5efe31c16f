// What `auto` means for one run, and how long that run is.
#ifndef ISTHMUS_DAEMON_APP_RUN_RESOLVE_H_
#define ISTHMUS_DAEMON_APP_RUN_RESOLVE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/training/tensor_table.h"
#include "protos/run.pb.h"

namespace isthmus {

// The codec of a dense last round.
inline constexpr char kDenseCodecSpec[] = "dense(bits=24)|zstd(1)";

struct ResolvedRun {
  std::string contribution_codec;  // canonical codec spec
  bool is_dense = false;           // of that codec
  float outer_rate = 1;            // α or η
  float outer_momentum = 0;        // μ; 0 for the PLAIN form
  bool is_nesterov = false;
  int64_t total_rounds = 0;          // given or estimated from the tokens; ≥ 1
  int64_t total_schedule_steps = 0;  // total_rounds · H: what the learning-rate schedule spans
};

// Rounds of a run: total_rounds, or those that `sites` need for total_tokens, whichever comes first. `run`
// has its defaults. At least 1.
int64_t EstimateRounds(const RunFile& run, int64_t sites);

// `spec` with "auto" and "k=auto" replaced by what fits a run of so many rounds. A k shorter than its word is
// filled up with blanks, so that errors still point at the right character.
std::string FillAutoCodec(absl::string_view spec, int64_t total_rounds);

// `sites`: of the first view. INVALID_ARGUMENT when the codec spec is none, pointing at the character, or
// when neither end of the run is given.
absl::StatusOr<ResolvedRun> ResolveAuto(const RunFile& run, int64_t sites);

ModelShape ModelShapeOf(const ModelConfig& model);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_RUN_RESOLVE_H_
