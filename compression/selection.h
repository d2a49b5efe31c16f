// Which k values of a block are kept: the k of largest magnitude.
#ifndef ISTHMUS_COMPRESSION_SELECTION_H_
#define ISTHMUS_COMPRESSION_SELECTION_H_

#include <cstdint>

#include "absl/types/span.h"
#include "compression/layout.h"

namespace isthmus {

// Kept values of a block of `values` (1 … 4096) when a whole one keeps `k`: max(1, round(k·values/4096)),
// halves rounded up.
constexpr int KeptValues(int k, int64_t values) {
  const int64_t kept = (k * values + kBlockValues / 2) / kBlockValues;
  return kept < 1 ? 1 : static_cast<int>(kept);
}

// Selection with its scratch memory. Not thread-safe; one per encoding.
class BlockSelector {
 public:
  // Writes the positions of the positions.size() largest of `magnitudes`, ascending; of equal ones the lower
  // positions win. `magnitudes` are the bits of |d|, at most 4096 and at least as many as positions; finite.
  void Select(absl::Span<const uint32_t> magnitudes, absl::Span<uint16_t> positions);

 private:
  // Magnitude bits are sorted into bins by exponent and two bits of mantissa.
  static constexpr int kBinShift = 21;
  static constexpr int kBins = 1 << (31 - kBinShift);

  uint16_t bins_[kBins];
  uint32_t candidates_[kBlockValues];
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_SELECTION_H_
