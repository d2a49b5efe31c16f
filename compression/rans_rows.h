// The inner loops of range coding's writer, eight symbols at a time. One for each path, all of the same
// bytes.
#ifndef ISTHMUS_COMPRESSION_RANS_ROWS_H_
#define ISTHMUS_COMPRESSION_RANS_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compression/rans_code.h"
#include "compression/simd_path.h"

namespace isthmus {

// All tables' symbols as a writer needs them, at place 256 · table + symbol:
// state → state + first + ⌊state / frequency⌋ · others.
struct RansWriterParts {
  // ⌊state / frequency⌋ = state · inverse / 2^kRansInverseBits: exact for states below 2^20 · frequency, all
  // that are left once 16 bits have been given off, and the product stays below 2^64.
  std::vector<uint64_t> inverse;
  // The first of the symbol's parts (bits 0 … 11), how many are not the symbol's (16 … 31) and how many are
  // (from 32 on).
  std::vector<uint64_t> shares;
};
inline constexpr int kRansInverseBits = 44;

// Bytes before *word that are written in any case.
inline constexpr size_t kRansWordSlack = 16;

// Puts symbols [0, 8 · rows) from the last to the first, each into states[place mod 8]; words go before
// *word, which moves.
using RansPutRowsFn = void (*)(const RansWriterParts& parts, const RansSymbol* symbols, size_t rows,
                               uint32_t* states, char** word);

// That of the path, or the portable one where it has none of its own or the processor lacks it.
RansPutRowsFn RansPutRowsOf(SimdPath path);

void RansPutRowsPortable(const RansWriterParts& parts, const RansSymbol* symbols, size_t rows,
                         uint32_t* states, char** word);
// Null in builds for other processors.
RansPutRowsFn RansPutRowsAvx512();

// One symbol: the state after it. No branch: which way it would go is as good as random.
inline uint32_t RansPut(const RansWriterParts& parts, RansSymbol symbol, uint32_t state, char** word) {
  const size_t at = size_t{symbol.table} * kRansSymbols + symbol.symbol;
  const uint64_t shares = parts.shares[at];
  (*word)[-2] = static_cast<char>(state);
  (*word)[-1] = static_cast<char>(state >> 8);
  const uint32_t flushed = state >> (32 - kRansBits) >= shares >> 32 ? 1 : 0;
  *word -= 2 * flushed;
  state >>= 16 * flushed;
  const uint64_t quotient = state * parts.inverse[at] >> kRansInverseBits;
  return state + static_cast<uint32_t>((shares & 0xFFFF) + quotient * (shares >> 16 & 0xFFFF));
}

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_RANS_ROWS_H_
