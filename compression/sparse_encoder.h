// Fills a sparse frame's table and streams (FORMAT.md): blocks in parallel, then tensors in order.
#ifndef ISTHMUS_COMPRESSION_SPARSE_ENCODER_H_
#define ISTHMUS_COMPRESSION_SPARSE_ENCODER_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/codec_spec.h"
#include "compression/difference.h"
#include "compression/encode_plan.h"
#include "compression/frame_format.h"

namespace isthmus {

// The separate residual of an encode (residual.h); all arrays are the layout's whole.
struct ResidualPass {
  DecayedResidual before;
  absl::Span<float> left;  // the residual after
};

// Reads each array once and writes neither; inputs are as CheckEncodeInput wants them. Scratch is about the
// size of the streams. INVALID_ARGUMENT when a difference is not finite, naming the first.
absl::StatusOr<FrameBody> EncodeSparse(const CodecSpec& spec, const EncodePlan& plan, const Layout& layout,
                                       absl::Span<const float> anchor, absl::Span<const float> parameters);

// Whether sums with a residual can be encoded in one pass: no plan looks at values, no tensor has a form by
// rows. Reads 64 rows of a matrix at most. Needs plain float mode (float_mode.h).
bool EncodesInOnePass(const CodecSpec& spec, const Layout& layout, absl::Span<const float> anchor,
                      absl::Span<const float> parameters, const DecayedResidual& residual);

// The same as EncodeSparse for such sums.
absl::StatusOr<FrameBody> EncodeSparse(const CodecSpec& spec, const EncodePlan& plan, const Layout& layout,
                                       absl::Span<const float> anchor, absl::Span<const float> parameters,
                                       const ResidualPass& residual);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_SPARSE_ENCODER_H_
