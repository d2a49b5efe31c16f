// Reads the streams of a sparse frame (FORMAT.md), which may come from an enemy.
#ifndef ISTHMUS_COMPRESSION_SPARSE_DECODER_H_
#define ISTHMUS_COMPRESSION_SPARSE_DECODER_H_

#include "absl/status/status.h"
#include "compression/checked_frame.h"
#include "compression/codec.h"
#include "compression/entry_scan.h"
#include "compression/frame_format.h"
#include "compression/layout.h"
#include "compression/sparse_limits.h"

namespace isthmus {

// Proves `body`, as OpenFrame gave it for SparseFrameLimits, good, and moves its streams into *checked,
// whose present tensors are then packed; those sent by rows are decoded. Memory beside the streams: four
// bytes a block, and what a tensor takes. INVALID_ARGUMENT, naming tensor and block, when malformed.
absl::Status CheckSparse(const SparseLimits& limits, const Layout& layout, const EntryScan& scan,
                         FrameBody&& body, CheckedFrame* checked);

// The positions and mantissas of a frame CheckSparse took. Eight bytes each.
DecodedFrame UnpackSparse(const Layout& layout, const EntryScan& scan, const CheckedFrame& checked);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_SPARSE_DECODER_H_
