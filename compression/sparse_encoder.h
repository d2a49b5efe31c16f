// Fills a sparse frame's table and streams (FORMAT.md): blocks in parallel, then tensors in order.
#ifndef ISTHMUS_COMPRESSION_SPARSE_ENCODER_H_
#define ISTHMUS_COMPRESSION_SPARSE_ENCODER_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/codec_spec.h"
#include "compression/frame_format.h"
#include "compression/simd_path.h"

namespace isthmus {

// How an encoder works; what it writes does not depend on it.
struct EncodePlan {
  SimdPath path = SimdPath::kPortable;  // one that is there
  int threads = 1;                      // the caller's among them; at least 1
};

// Reads each array once and writes neither; inputs are as CheckEncodeInput wants them. Scratch is about the
// size of the streams. INVALID_ARGUMENT when a difference is not finite, naming the first.
absl::StatusOr<FrameBody> EncodeSparse(const CodecSpec& spec, const EncodePlan& plan, const Layout& layout,
                                       absl::Span<const float> anchor, absl::Span<const float> parameters);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_SPARSE_ENCODER_H_
