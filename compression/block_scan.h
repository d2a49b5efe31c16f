// The passes over a block's values that vector instructions speed up. One table of them for each path.
//
// All of it is exact: every path gives the same numbers. Magnitudes are compared as the bits of |d|, which
// order as the values do. Threads may share a table.
#ifndef ISTHMUS_COMPRESSION_BLOCK_SCAN_H_
#define ISTHMUS_COMPRESSION_BLOCK_SCAN_H_

#include <cstdint>

#include "compression/layout.h"
#include "compression/level_fit.h"
#include "compression/simd_path.h"

namespace isthmus {

inline constexpr int kMarkWords = kBlockValues / 64;

// Values of a block that reached a threshold, in ascending positions. The arrays are longer than a block, so
// that a vector may be written past the last one.
struct Candidates {
  static constexpr int kRoom = kBlockValues + 64;
  int count = 0;
  alignas(64) uint32_t bits[kRoom];  // of d, sign and all
  alignas(64) uint32_t positions[kRoom];
};

// What a pass over a block found.
struct ScanResult {
  int marked = 0;        // values whose magnitude reaches the threshold
  uint32_t largest = 0;  // bits of the largest magnitude; 0x7F800000 or more: NaN or Inf is among them
};

// A block on its way out: past the caches, to where nobody reads soon.
struct Outgoing {
  const float* from = nullptr;
  float* to = nullptr;
  int values = 0;  // 0: there is none
};

struct BlockScan {
  // differences[i] = anchor[i] − parameters[i], and bit i of `marks` is whether |differences[i]| reaches
  // `threshold`. Bits of values past the last are 0. 1 ≤ values ≤ 4096; all arrays but the inputs have room
  // for a whole block. May ask the memory for the next block's values ahead of time.
  ScanResult (*difference)(const float* anchor, const float* parameters, int values, uint32_t threshold,
                           float* differences, uint64_t* marks);
  // The same with differences[i] = β·residual[i] + (anchor[i] − parameters[i]), each operation rounded.
  // Meanwhile sends out another block, so that reading and writing take turns.
  ScanResult (*sum)(const float* anchor, const float* parameters, const float* residual, float beta,
                    int values, uint32_t threshold, const Outgoing& outgoing, float* differences,
                    uint64_t* marks);
  // Sends out a block; then other threads may read whatever was sent out.
  void (*send)(const Outgoing& outgoing);
  // Marks anew; how many there are.
  int (*mark)(const float* differences, int values, uint32_t threshold, uint64_t* marks);
  // Gathers what is marked, which is `marked` values.
  void (*gather)(const float* differences, const uint64_t* marks, int marked, Candidates* out);
  // How many candidates have a magnitude of at least `threshold`, which is not 0.
  int (*count)(const Candidates& candidates, uint32_t threshold);
  // Keeps those with a magnitude of at least `threshold`: their positions, ascending, d and |d|, in arrays
  // with room for Candidates::kRoom.
  void (*keep)(const Candidates& candidates, uint32_t threshold, uint16_t* positions, float* differences,
               float* magnitudes);
  // Bit i of *out is whether differences[i] < 0; whole words are written, unused bits 0.
  void (*signs)(const float* differences, int count, uint64_t* out);
  ClassFit fit;
};

// Null when the build or the processor lacks the path; kPortable has none, its selection works otherwise.
const BlockScan* BlockScanOf(SimdPath path);

// The tables of each file; null in builds for other processors.
const BlockScan* Avx2BlockScan();
const BlockScan* Avx512BlockScan();

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_BLOCK_SCAN_H_
