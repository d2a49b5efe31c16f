// A frame that was opened and proved good, with its sparse tensors still in their packed streams: what a hub
// holds from a contribution's arrival until the sum. A tenth of what the decoded frame takes, and no less
// exact: whoever reads it needs to check nothing more.
#ifndef ISTHMUS_COMPRESSION_CHECKED_FRAME_H_
#define ISTHMUS_COMPRESSION_CHECKED_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compression/codec.h"

namespace isthmus {

// Bytes that are there, as zeros, after the last one of a checked frame's gap and value streams: vectors may
// be read past it.
inline constexpr size_t kStreamSlack = 64;

// What the gaps of a block come to.
struct GapExtent {
  uint16_t bytes = 0;    // that they take
  uint16_t entries = 0;  // positions among them
};

// Where a packed tensor's part of each stream begins. Plain value.
struct PackedTensor {
  int value_bits = 0;  // 1 … 3; 0: the tensor is not packed, or absent
  size_t first_block = 0, first_level = 0, first_gap = 0;
  size_t first_bit = 0;  // of the value stream
};

// Filled by Codec::Check. Keeps its memory from one use to the next.
struct CheckedFrame {
  // As many tensors as the layout has; of a packed one only form, exponent and mantissa bits are set.
  DecodedFrame decoded;
  std::vector<PackedTensor> packed;  // one a tensor; empty when none is
  std::vector<GapExtent> blocks;     // of the packed tensors, one after another
  std::string levels, gaps, values;  // the streams (FORMAT.md)

  bool is_packed(int tensor) const { return !packed.empty() && packed[tensor].value_bits != 0; }
  void Clear();  // no tensors; memory is kept
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_CHECKED_FRAME_H_
