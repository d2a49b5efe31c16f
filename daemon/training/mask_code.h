// What the positions of kept values cost under adaptive models of where they lie: real code lengths of an
// ideal arithmetic coder whose decoder could follow, not entropies fitted afterwards.
#ifndef ISTHMUS_DAEMON_TRAINING_MASK_CODE_H_
#define ISTHMUS_DAEMON_TRAINING_MASK_CODE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace isthmus {

// Which neighbours sharpen the chance that a value is kept.
struct MaskContext {
  bool row = false;     // kept so far in this row of the matrix
  bool column = false;  // kept so far in this column, in the rows above
  // Whether the same site kept the value the last time; same size as the mask, or empty.
  absl::Span<const uint8_t> before = {};
};

// Bits for the positions of a tensor's kept values (mask[i] = 1), `columns` wide. The number kept in each
// block of 4096 is known, so that without a context this is log2 of "n over k" summed over the blocks. With
// one, the odds are multiplied for each context by (kept so far + s) / (expected so far + s), the best s of
// four being told in 2 bits.
double MaskBits(absl::Span<const uint8_t> mask, int64_t columns, const MaskContext& context);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_MASK_CODE_H_
