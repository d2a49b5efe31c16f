// The passes over a block's sums that writing and reading an update takes, and that vector instructions speed
// up. One table of them for each path.
//
// All of it is exact: every path gives the same numbers. Threads may share a table.
#ifndef ISTHMUS_COMPRESSION_SUM_PASSES_H_
#define ISTHMUS_COMPRESSION_SUM_PASSES_H_

#include <cstddef>
#include <cstdint>

#include "compression/layout.h"
#include "compression/simd_path.h"

namespace isthmus {

// A block's sums as its writer needs them.
struct SplitSums {
  alignas(64) uint16_t magnitudes[kBlockValues];  // of which only the low 16 bits
  uint64_t signs[kBlockValues / 64];  // of those that are not 0: set when negative, low bits first
  int sign_count;                     // bits of them
  uint64_t any;                       // all magnitudes together, bit by bit
};

// A block's entries, where they are few: in order of appearance.
struct FewEntries {
  static constexpr int kMost = 16;

  uint16_t magnitudes[kMost];
  int counts[kMost];
  alignas(64) uint8_t places[kBlockValues];  // which of them each sum has
};

// What a block's names mean, and where its signs are.
struct NamedSums {
  const int64_t* magnitudes = nullptr;  // 256 of them, of which the first `known` mean something
  int known = 0;
  bool has_zero = false;           // among them: sums of 0 have no sign
  const uint8_t* signs = nullptr;  // bits, low ones first; 8 readable bytes after the last one
  size_t sign_at = 0;              // the next one
};

struct SumPasses {
  // OR of all.
  uint64_t (*any)(const int64_t* sums, size_t count);
  // Of 1 … 4096 sums, over 2^zeros.
  void (*split)(const int64_t* sums, int count, int zeros, SplitSums* out);
  // Finds the entries of 1 … 4096 magnitudes; how many, or 0 when they are more than few, or not looked for.
  int (*count_few)(const uint16_t* magnitudes, int count, FewEntries* out);
  // symbols[2i] = table, symbols[2i + 1] = ranks[places[i]]; `ranks` has one for each of FewEntries::kMost.
  void (*name_few)(const uint8_t* places, int count, uint8_t table, const uint8_t* ranks, uint8_t* symbols);
  // sums[i] = ± the magnitude that names[i] says, and moves sign_at on; false when one means nothing, and
  // sums are then anything.
  bool (*look_up)(const uint8_t* names, int count, NamedSums* named, int64_t* sums);
  // Sets the bits at ascending places, low bits first; others are 0 before.
  void (*mark)(const uint32_t* places, size_t count, uint8_t* bytes, size_t byte_count);
  // How many bits are set.
  size_t (*ones)(const uint8_t* bytes, size_t count);
  // Writes the places of the bits set in `bytes`, low bits first; `ones` of them are.
  void (*places)(const uint8_t* bytes, size_t count, size_t ones, uint32_t* out);
};

// That of the path, or the portable one where it has none of its own or the processor lacks it.
const SumPasses& SumPassesOf(SimdPath path);

// The tables of each file; null in builds for other processors.
const SumPasses& PortableSumPasses();
const SumPasses* Avx512SumPasses();

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_SUM_PASSES_H_
