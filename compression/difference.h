// What a codec encodes: fp32(anchor − parameters), or that added to a decayed residual; checked.
#ifndef ISTHMUS_COMPRESSION_DIFFERENCE_H_
#define ISTHMUS_COMPRESSION_DIFFERENCE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compression/layout.h"

namespace isthmus {

// INVALID_ARGUMENT unless both arrays are layout.total() long and every tensor can be coded (below 2^32
// values).
absl::Status CheckEncodeInput(const Layout& layout, absl::Span<const float> anchor,
                              absl::Span<const float> parameters);

// Writes differences[i] = anchor[i] − parameters[i], all three as long. False when one is NaN or Inf.
bool TakeDifference(absl::Span<const float> anchor, absl::Span<const float> parameters,
                    absl::Span<float> differences);

// The error for a difference of `tensor` that is NaN or Inf: names the tensor, the position, and whose value
// it is. `from` is the first position to look at; one must be found.
absl::Status NonFiniteDifference(const Layout& layout, int tensor, int64_t from,
                                 absl::Span<const float> anchor, absl::Span<const float> parameters);

// A residual that is multiplied by β and added to: sum = fp32(fp32(β·e) + fp32(anchor − parameters)).
struct DecayedResidual {
  absl::Span<const float> values;
  float beta = 1;
};

// INVALID_ARGUMENT unless CheckEncodeInput is content, the residual and what takes the one after, of `left`
// values, are as long, and 0 ≤ β ≤ 1.
absl::Status CheckResidualInput(const Layout& layout, absl::Span<const float> anchor,
                                absl::Span<const float> parameters, const DecayedResidual& residual,
                                size_t left);

// Writes the sums, all four equally long. False when one is NaN or Inf. Needs plain float mode.
bool TakeSum(absl::Span<const float> anchor, absl::Span<const float> parameters,
             const DecayedResidual& residual, absl::Span<float> sums);

// As NonFiniteDifference, of sums; arrays are the layout's whole.
absl::Status NonFiniteSum(const Layout& layout, int tensor, int64_t from, absl::Span<const float> anchor,
                          absl::Span<const float> parameters, const DecayedResidual& residual);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_DIFFERENCE_H_
