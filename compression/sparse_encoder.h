// Makes a sparse frame (FORMAT.md): runs of blocks in parallel, then put together in order.
#ifndef ISTHMUS_COMPRESSION_SPARSE_ENCODER_H_
#define ISTHMUS_COMPRESSION_SPARSE_ENCODER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/codec_spec.h"
#include "compression/difference.h"
#include "compression/encode_plan.h"
#include "compression/layout.h"

namespace isthmus {

// The separate residual of an encode (residual.h); all arrays are the layout's whole.
struct ResidualPass {
  DecayedResidual before;
  absl::Span<float> left;  // the residual after
};

// Of each form of a tensor so many bytes of encoded runs are held at most before the tensor's exponent is
// known.
inline constexpr int64_t kHeldBytes = 16 << 20;

// The frame. Reads each array once and writes neither; inputs are as CheckEncodeInput wants them. (A tensor
// too large to be held is read again if it has blocks 2^20 apart, or rows to be sent by themselves.)
//
// Scratch beside the frame: twice held_bytes, about a MiB and two runs for each thread, and for each block a
// byte a level, eight more while its tensor goes through. It does not grow with the number of kept values;
// nothing is allocated per block. INVALID_ARGUMENT when a difference is not finite, naming the first.
absl::StatusOr<std::string> EncodeSparse(const CodecSpec& spec, const EncodePlan& plan, const Layout& layout,
                                         absl::Span<const float> anchor, absl::Span<const float> parameters,
                                         int64_t held_bytes = kHeldBytes);

// Whether sums with a residual can be encoded in one pass: no plan looks at values, no tensor has a form by
// rows. Reads 64 rows of a matrix at most. Needs plain float mode (float_mode.h).
bool EncodesInOnePass(const CodecSpec& spec, const Layout& layout, absl::Span<const float> anchor,
                      absl::Span<const float> parameters, const DecayedResidual& residual);

// The same as EncodeSparse for such sums.
absl::StatusOr<std::string> EncodeSparse(const CodecSpec& spec, const EncodePlan& plan, const Layout& layout,
                                         absl::Span<const float> anchor, absl::Span<const float> parameters,
                                         const ResidualPass& residual, int64_t held_bytes = kHeldBytes);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_SPARSE_ENCODER_H_
