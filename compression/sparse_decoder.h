// Reads the streams of a sparse frame (FORMAT.md), which may come from an enemy.
#ifndef ISTHMUS_COMPRESSION_SPARSE_DECODER_H_
#define ISTHMUS_COMPRESSION_SPARSE_DECODER_H_

#include "absl/status/statusor.h"
#include "compression/codec.h"
#include "compression/frame_format.h"
#include "compression/layout.h"
#include "compression/sparse_limits.h"

namespace isthmus {

// `body` as OpenFrame gave it for SparseFrameLimits. Memory: at most eight bytes for each gap byte there is,
// and for each value the table lets a tensor keep. INVALID_ARGUMENT, naming tensor and block, when malformed.
absl::StatusOr<DecodedFrame> DecodeSparse(const SparseLimits& limits, const Layout& layout,
                                          const FrameBody& body);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_SPARSE_DECODER_H_
