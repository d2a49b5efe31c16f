// The passes over a sparse block's packed entries that vector instructions speed up. One table of them for
// each path.
//
// All of it is exact: every path gives the same numbers. Threads may share a table.
#ifndef ISTHMUS_COMPRESSION_ENTRY_SCAN_H_
#define ISTHMUS_COMPRESSION_ENTRY_SCAN_H_

#include <cstddef>
#include <cstdint>

#include "compression/checked_frame.h"
#include "compression/layout.h"
#include "compression/simd_path.h"

namespace isthmus {

// Codes of a value: sign and up to two bits of class.
inline constexpr int kMostCodes = 8;

// One block's entries in their streams, measured before. Streams have kStreamSlack readable bytes after them.
struct PackedEntries {
  const uint8_t* gaps = nullptr;
  int gap_bytes = 0;
  int entries = 0;
  const uint8_t* values = nullptr;     // the frame's value stream
  size_t first_bit = 0;                // of the block's first value in it
  int value_bits = 1;                  // 1 … 3
  const int32_t* mantissas = nullptr;  // kMostCodes numbers, by code
};

// Room for entries unpacked, which may be written past the last one by a vector.
struct UnpackedEntries {
  static constexpr int kRoom = kBlockValues + 64;
  alignas(64) uint32_t positions[kRoom];  // in the block, ascending
  alignas(64) int32_t mantissas[kRoom];
};

// Memory that will be wanted soon, to be asked for meanwhile.
struct SoonWanted {
  const char* begin = nullptr;  // null: none
  size_t bytes = 0;
};

// Measures the gaps of a block of `values` values (1 … 4096) that keeps at most `kept` of them (at least 1),
// of which `left` bytes are there. A block with fewer entries ends with a gap that leads exactly to its end.
// False when the bytes end too early or a position would pass the block's end.
bool MeasureGaps(const uint8_t* gaps, size_t left, int kept, int values, GapExtent* extent);

struct EntryScan {
  // Measures blocks of 4096 values that keep `kept`, one after another, as long as they are full; up to
  // `blocks` of them. How many were; may stop early, so that MeasureGaps must judge the next one. `left`
  // bytes are there.
  int (*measure_full)(const uint8_t* gaps, size_t left, int kept, int blocks, GapExtent* extents);
  // The block's entries, position by position.
  void (*unpack)(const PackedEntries& block, UnpackedEntries* out);
  // sums[position] += mantissa for each entry of `count` blocks. `sums` has room for kBlockValues + 1.
  void (*add)(const PackedEntries* blocks, int count, const SoonWanted& soon, int32_t* sums);
};

// That of the path, or the portable one where build or processor lack it.
const EntryScan& EntryScanOf(SimdPath path);

// The tables of each file; the vector ones null in builds for other processors.
const EntryScan& PortableEntryScan();
const EntryScan* Avx2EntryScan();
const EntryScan* Avx512EntryScan();

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_ENTRY_SCAN_H_
