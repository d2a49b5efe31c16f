// Reads the streams of a sparse frame (FORMAT.md), which may come from an enemy.
#ifndef ISTHMUS_COMPRESSION_SPARSE_DECODER_H_
#define ISTHMUS_COMPRESSION_SPARSE_DECODER_H_

#include "absl/status/status.h"
#include "compression/checked_frame.h"
#include "compression/codec.h"
#include "compression/entry_placer.h"
#include "compression/frame_format.h"
#include "compression/layout.h"
#include "compression/sparse_limits.h"

namespace isthmus {

// Proves *opened, as OpenFrame gave it for SparseFrameLimits, good, and makes *checked of it, whose present
// tensors are then placed; those sent by rows are decoded. Leaves of *opened only the memory, for the next
// one. INVALID_ARGUMENT, naming tensor and block, when malformed.
absl::Status CheckSparse(const SparseLimits& limits, const Layout& layout, PlaceFullFn place_full,
                         FrameBody* opened, CheckedFrame* checked);

// The positions and mantissas of a frame CheckSparse took. Eight bytes each.
DecodedFrame UnpackSparse(const Layout& layout, const CheckedFrame& checked);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_SPARSE_DECODER_H_
