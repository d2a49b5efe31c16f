#include "compression/block_take.h"

namespace isthmus {
namespace {

int TakePairs(const BlockSums& sums, const TakenSums& out) {
  int count = 0;
  for (int i = 0; i < sums.values; ++i) {
    const int64_t above = sums.pairs[2 * i], below = sums.pairs[2 * i + 1];
    out.positions[count] = static_cast<uint32_t>(sums.from + i);
    out.sums[count] = (above - below) * (int64_t{1} << sums.shift);
    count += (above | below) != 0;
  }
  return count;
}

}  // namespace

int BlockTakePortable(const BlockSums& sums, const TakenSums& out) {
  if (sums.pairs != nullptr) return TakePairs(sums, out);
  const int64_t unit = int64_t{1} << sums.shift;
  int count = 0;
  for (int word = 0; word < kSumMarkWords; ++word) {
    for (uint64_t mark = sums.marks[word]; mark != 0; mark &= mark - 1, ++count) {
      const int i = 64 * word + __builtin_ctzll(mark);
      out.positions[count] = static_cast<uint32_t>(sums.from + i);
      // A product, not a shift: the sum can be negative.
      out.sums[count] = sums.narrow == nullptr ? sums.wide[i] : sums.narrow[i] * unit;
      if (out.weights != nullptr) out.weights[count] = sums.weights[i];
    }
  }
  return count;
}

BlockTakeFn BlockTakeOf(SimdPath path) {
  const bool fast = path == SimdPath::kAvx512 && HasSimdPath(path) && BlockTakeAvx512() != nullptr;
  return fast ? BlockTakeAvx512() : BlockTakePortable;
}

}  // namespace isthmus
