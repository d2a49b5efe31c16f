// Fills a sparse frame's table and streams (FORMAT.md): blocks in parallel, then tensors in order.
#ifndef ISTHMUS_COMPRESSION_SPARSE_ENCODER_H_
#define ISTHMUS_COMPRESSION_SPARSE_ENCODER_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/codec_spec.h"
#include "compression/encode_plan.h"
#include "compression/frame_format.h"

namespace isthmus {

// Reads each array once and writes neither; inputs are as CheckEncodeInput wants them. Scratch is about the
// size of the streams. INVALID_ARGUMENT when a difference is not finite, naming the first.
absl::StatusOr<FrameBody> EncodeSparse(const CodecSpec& spec, const EncodePlan& plan, const Layout& layout,
                                       absl::Span<const float> anchor, absl::Span<const float> parameters);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_SPARSE_ENCODER_H_
