// A frame that was opened and proved good, with its sparse tensors as entries, block by block: what a hub
// holds from a contribution's arrival until the sum. A quarter of what the decoded frame takes, and no less
// exact: whoever reads it needs to check nothing more.
#ifndef ISTHMUS_COMPRESSION_CHECKED_FRAME_H_
#define ISTHMUS_COMPRESSION_CHECKED_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compression/codec.h"
#include "compression/entry_placer.h"

namespace isthmus {

// Where what a placed tensor has begins. Plain value.
struct PlacedTensor {
  int value_bits = 0;  // 1 … 3; 0: the tensor is not placed, or absent
  size_t first_block = 0, first_level = 0, first_entry = 0;
};

// Filled by Codec::Check. Keeps its memory from one use to the next.
struct CheckedFrame {
  // As many tensors as the layout has; of a placed one only form, exponent and mantissa bits are set.
  DecodedFrame decoded;
  std::vector<PlacedTensor> placed;  // one a tensor; empty when none is
  // Of the placed tensors, one after another:
  std::vector<uint16_t> counts;  // how many entries each block has
  std::vector<Entry> entries;    // and kEntrySlack more
  std::string levels;            // the stream (FORMAT.md)

  bool is_placed(int tensor) const { return !placed.empty() && placed[tensor].value_bits != 0; }
  void Clear();  // no tensors; memory is kept
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_CHECKED_FRAME_H_
