// Block top-k as the framework gives it: what `bench codec` holds the fused encoder against.
#ifndef ISTHMUS_DAEMON_TRAINING_TORCH_TOP_K_H_
#define ISTHMUS_DAEMON_TRAINING_TORCH_TOP_K_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace isthmus {

// The k differences of largest magnitude in each block of 4096, block after block.
struct TorchKept {
  std::vector<int64_t> positions;  // within the block, ascending
  std::vector<float> values;       // anchor − parameters there, aligned
};

// Difference, magnitude, topk, sort of the positions and gather: one operation of libtorch after the other on
// one thread. Both arrays are equally long, a multiple of 4096; 1 ≤ k ≤ 4096; INVALID_ARGUMENT otherwise,
// INTERNAL when libtorch fails. Sets the process's count of threads for libtorch to one.
absl::StatusOr<TorchKept> TorchTopK(absl::Span<const float> anchor, absl::Span<const float> parameters,
                                    int64_t k);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_TORCH_TOP_K_H_
