// The separate residual of error feedback: what a site has learned and not yet sent, in a buffer of its own
// (ROUNDS §5, SEPARATE). Every operation is rounded to fp32, so all implementations give the same bits.
//
//   contribute:         sum = fp32(fp32(β·e) + fp32(anchor − parameters)), frame = Encode(sum),
//                       e = fp32(sum − Decode(frame))
//   not committed:      e = fp32(e + Decode(frame))
//
// Threads may share all of this.
#ifndef ISTHMUS_COMPRESSION_RESIDUAL_H_
#define ISTHMUS_COMPRESSION_RESIDUAL_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compression/codec.h"
#include "compression/layout.h"

namespace isthmus {

// INVALID_ARGUMENT unless all three arrays are layout.total() long, every tensor can be coded and 0 ≤ β ≤ 1.
absl::Status CheckResidualInput(const Layout& layout, absl::Span<const float> anchor,
                                absl::Span<const float> parameters, float beta,
                                absl::Span<const float> residual);

// Writes sums[i] = β·residual[i] + (anchor[i] − parameters[i]), all equally long; `sums` may be `residual`.
// False when one is NaN or Inf. Needs plain float mode (float_mode.h).
bool TakeResidualSum(absl::Span<const float> anchor, absl::Span<const float> parameters, float beta,
                     absl::Span<const float> residual, absl::Span<float> sums);

// The error for a sum of `tensor` that is NaN or Inf: names the tensor, the position, and whose value it is.
// `from` is the first position to look at; one must be found.
absl::Status NonFiniteResidual(const Layout& layout, int tensor, int64_t from, absl::Span<const float> anchor,
                               absl::Span<const float> parameters, float beta,
                               absl::Span<const float> residual);

// residual ← residual ∓ Decode(frame) in the tensors that `included` names, empty meaning all of them. The
// frame fits the layout, as one that was decoded for it does.
void SubtractDecoded(const Layout& layout, const DecodedFrame& frame, const std::vector<bool>& included,
                     absl::Span<float> residual);
void AddDecoded(const Layout& layout, const DecodedFrame& frame, const std::vector<bool>& included,
                absl::Span<float> residual);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_RESIDUAL_H_
