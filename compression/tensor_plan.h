// How a sparse encoder treats each tensor: how many values it keeps of a block, and how it says their worth.
//
// What is planned is written in the frame; a decoder believes it within what the codec spec allows.
#ifndef ISTHMUS_COMPRESSION_TENSOR_PLAN_H_
#define ISTHMUS_COMPRESSION_TENSOR_PLAN_H_

#include <vector>

#include "absl/types/span.h"
#include "compression/codec_spec.h"
#include "compression/layout.h"
#include "compression/simd_path.h"

namespace isthmus {

// One tensor's. Plain value.
struct TensorPlan {
  int k = 0;            // kept values of a whole block, 1 … 4096
  int value_bits = 0;   // 1, 2 or 3
  int lloyd_steps = 0;  // that refine the levels after their first fit
};

// Tails (TensorSurvey) from which on two and three bits deliver more energy than one and two at equal cost,
// with levels refined and level bytes paid for. Measured on draws from normal, Laplace, log-normal, mixed and
// Student's t distributions: the first is passed at 1.04 (k = 16), 1.055 (64) and 1.07 (256), the second
// between 1.12 and 1.15 (1.2 at k = 16). Normal values have 1.006 at k = 64, Laplace's 1.018, t(5) 1.04,
// t(4) 1.06, t(3) 1.12. Without refining, the first is at 1.065. Differences of a small model that carries
// what it has not sent have 1.000 … 1.015 in all their tensors, so one bit.
inline constexpr double kTwoBitTail = 1.055;
inline constexpr double kThreeBitTail = 1.13;
// Below it refining gains less than a five-hundredth of the delivered energy.
inline constexpr double kRefinedTail = 1.02;

// What levels(bits=auto) chooses for a tensor: 1, 2 or 3.
int ValueBitsFor(double tail);
// Steps of RefineLevels for a tensor of two or three bits: 0, 2 or 4.
int LloydStepsFor(double tail);

// Whether plans hang on the values, so that these are surveyed first.
bool PlansByValues(const CodecSpec& spec);

// One plan for each tensor. Uniform for a spec of one bit and share=uniform, which looks at no values; else
// by a survey of each tensor: with share=energy k by ShareByEnergy, and with levels(bits=auto) so many bits
// as the tail asks for, with as many kept values as cost what k of one bit would.
//
// Depends on spec, layout and the values alone (not on the path, no threads, no clock), for frames' bytes
// hang on it. Both arrays are layout.total() long and may hold NaN and Inf. The path must be there
// (HasSimdPath). Thread-safe. Needs plain float mode (float_mode.h).
std::vector<TensorPlan> PlanTensors(const CodecSpec& spec, const Layout& layout,
                                    absl::Span<const float> anchor, absl::Span<const float> parameters,
                                    SimdPath path = SimdPath::kPortable);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_TENSOR_PLAN_H_
