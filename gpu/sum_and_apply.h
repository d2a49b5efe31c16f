// The hub's round in one pass: each block's sums move the anchor while they are still in the cache.
#ifndef ISTHMUS_GPU_SUM_AND_APPLY_H_
#define ISTHMUS_GPU_SUM_AND_APPLY_H_

#include "absl/types/span.h"
#include "compression/layout.h"
#include "compression/update.h"
#include "gpu/device_ops.h"

namespace isthmus {

// Whether the pass below can do this step: the plain form, at a rate that leaves what nobody sent alone.
bool CanSumAndApply(const OuterStep& step);

// As SumFrames, and ApplyToAnchor with what that gives, bit for bit. Frames must have been checked
// (CheckSumInput), `anchor` must be layout.total() long. `update` may be null; its
// memory is used again.
void SumAndApplyBlocks(const Layout& layout, absl::Span<const WeightedFrame> frames, Averaging averaging,
                       const OuterStep& step, const SumOptions& options, absl::Span<float> anchor,
                       Update* update);

}  // namespace isthmus

#endif  // ISTHMUS_GPU_SUM_AND_APPLY_H_
