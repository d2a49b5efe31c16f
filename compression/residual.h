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

#include "absl/types/span.h"
#include "compression/codec.h"
#include "compression/layout.h"

namespace isthmus {

// residual ← residual ∓ Decode(frame) in the tensors that `included` names, empty meaning all of them. The
// frame fits the layout, as one that was decoded for it does.
void SubtractDecoded(const Layout& layout, const DecodedFrame& frame, const std::vector<bool>& included,
                     absl::Span<float> residual);
void AddDecoded(const Layout& layout, const DecodedFrame& frame, const std::vector<bool>& included,
                absl::Span<float> residual);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_RESIDUAL_H_
