// What a sample of a tensor's blocks says about its differences: how large they are, how much of them the
// kept ones hold, and how unequal those are. Costs little: blocks spread evenly over the tensor are read, of
// a large one at most one in 32.
#ifndef ISTHMUS_COMPRESSION_TENSOR_SURVEY_H_
#define ISTHMUS_COMPRESSION_TENSOR_SURVEY_H_

#include <cstdint>

#include "absl/types/span.h"
#include "compression/block_picker.h"
#include "compression/layout.h"

namespace isthmus {

// Plain value; all 0 for a tensor whose sampled blocks are all zeros.
struct TensorSurvey {
  double energy = 0;    // mean square of a sampled value
  double captured = 0;  // share of the sample's energy that its kept values hold
  double tail =
      0;  // rms over mean of a block's kept magnitudes (zeros apart), averaged over blocks; 1 or more
};

// Sampled blocks of a tensor with so many: all of up to 8, then 8 until that is one in 64, then one in 64, at
// most 64.
int64_t SampledBlocks(int64_t blocks);
// Which block is the i-th of the sample.
constexpr int64_t SampledBlock(int64_t blocks, int64_t sampled, int64_t i) {
  return (2 * i + 1) * blocks / (2 * sampled);
}

// Surveys tensors one after another. What it finds depends on values and k alone: kept values are the same on
// every path, and sums are taken in double in one order, of eight lanes (value i in lane i mod 8) joined as
// in level_fit.h, block after block. Too large for a small stack. Not thread-safe; needs plain float mode.
class TensorSurveyor {
 public:
  // The path must be there (HasSimdPath).
  explicit TensorSurveyor(SimdPath path) : picker_(path) {}

  // Both arrays are as long and hold at least a value; `k` as in KeptValues. Blocks with NaN or Inf are left
  // out: encoding refuses them.
  TensorSurvey Survey(absl::Span<const float> anchor, absl::Span<const float> parameters, int k);

 private:
  BlockPicker picker_;
  PickedBlock picked_;
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_TENSOR_SURVEY_H_
