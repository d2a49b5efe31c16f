// From a frame's gap and value streams to its entries: where each value belongs in its block, and its code.
// The vector paths take full blocks, many at a time; any other block is placed singly.
//
// All of it is exact, and streams may come from an enemy: every path takes and refuses the same blocks.
// Threads may share a table.
#ifndef ISTHMUS_COMPRESSION_ENTRY_PLACER_H_
#define ISTHMUS_COMPRESSION_ENTRY_PLACER_H_

#include <cstddef>
#include <cstdint>

#include "compression/layout.h"
#include "compression/simd_path.h"

namespace isthmus {

// An entry: the position in the block, 12 bits, above the value's code, 1 to 3 bits: its class above its
// sign.
using Entry = uint16_t;

// Codes of a value: sign and up to two bits of class.
inline constexpr int kMostCodes = 8;

// Bytes that must be readable after those of a gap or value stream, and entries after the last one for which
// there is room: vectors pass the end.
inline constexpr size_t kStreamSlack = 64;
inline constexpr size_t kEntrySlack = 64;

// Where the next blocks lie in their streams. Of values there must be enough: a bit stream, low bits first.
struct EntryStreams {
  const uint8_t* gaps = nullptr;
  size_t gap_bytes = 0;  // left
  const uint8_t* values = nullptr;
  size_t first_bit = 0;  // of the next block's first value
  int value_bits = 1;    // 1 … 3
};

// What was placed.
struct PlacedBlocks {
  int blocks = 0;
  size_t gap_bytes = 0;
};

// A block's gaps, judged.
struct PlacedPositions {
  bool is_good = false;  // else the gaps end too early or a position would pass the block's end
  size_t gap_bytes = 0;  // up to the block's end, or to where it went wrong
  int entries = 0;
};

// Writes the positions of one block of `values` values (1 … 4096) that keeps at most `kept` of them (at least
// 1), of whose gaps `gap_bytes` bytes are there. A block with fewer entries ends with a gap that leads
// exactly to its end. `positions` has room for `kept` and kEntrySlack.
PlacedPositions PlacePositions(const uint8_t* gaps, size_t gap_bytes, int kept, int values, Entry* positions);

// Makes entries of `count` positions, with the values from `first_bit` on.
void AddCodes(const uint8_t* values, size_t first_bit, int value_bits, int count, Entry* positions);

// Places blocks of 4096 values that keep `kept`, one after another, as long as they are full; at most
// `blocks` of them. May stop early, so that PlacePositions must judge the next one. Writes kept entries for
// each, and garbage up to kEntrySlack after them.
using PlaceFullFn = PlacedBlocks (*)(const EntryStreams& streams, int kept, int blocks, Entry* entries);

// That of the path, or the portable one where build or processor lack it.
PlaceFullFn PlaceFullOf(SimdPath path);

PlacedBlocks PlaceFullPortable(const EntryStreams& streams, int kept, int blocks, Entry* entries);
// Null in builds for other processors.
PlaceFullFn PlaceFullAvx2();
PlaceFullFn PlaceFullAvx512();

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_ENTRY_PLACER_H_
