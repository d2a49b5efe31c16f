// How a sparse encoder treats each tensor: how many values it keeps of a block, and how it says their worth.
//
// What is planned is written in the frame; a decoder believes it within what the codec spec allows.
#ifndef ISTHMUS_COMPRESSION_TENSOR_PLAN_H_
#define ISTHMUS_COMPRESSION_TENSOR_PLAN_H_

#include <vector>

#include "absl/types/span.h"
#include "compression/codec_spec.h"
#include "compression/layout.h"

namespace isthmus {

// One tensor's. Plain value.
struct TensorPlan {
  int k = 0;            // kept values of a whole block, 1 … 4096
  int value_bits = 0;   // 1, 2 or 3
  int lloyd_steps = 0;  // that refine the levels after their first fit
};

// One plan for each tensor. Depends on spec, layout and the values alone (no threads, no clock), for frames'
// bytes hang on it. Both arrays are layout.total() long and may hold NaN and Inf. Thread-safe. Needs plain
// float mode (float_mode.h).
std::vector<TensorPlan> PlanTensors(const CodecSpec& spec, const Layout& layout,
                                    absl::Span<const float> anchor, absl::Span<const float> parameters);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_TENSOR_PLAN_H_
