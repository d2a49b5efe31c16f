#include "compression/selection.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace isthmus {

void BlockSelector::Select(absl::Span<const uint32_t> magnitudes, absl::Span<uint16_t> positions) {
  const int kept = static_cast<int>(positions.size());
  const int values = static_cast<int>(magnitudes.size());

  std::memset(bins_, 0, sizeof(bins_));
  for (uint32_t m : magnitudes) ++bins_[m >> kBinShift];

  // The bin that holds the kept-th largest magnitude; all in higher bins are kept.
  int bin = kBins - 1, above = 0;
  while (above + bins_[bin] < kept) above += bins_[bin--];

  int count = 0;
  for (uint32_t m : magnitudes) {
    candidates_[count] = m;
    count += static_cast<int>(m >> kBinShift) == bin;
  }
  const int rank = kept - above - 1;
  std::nth_element(candidates_, candidates_ + rank, candidates_ + count, std::greater<uint32_t>());
  const uint32_t threshold = candidates_[rank];
  // Of those equal to the threshold, as many as still have room; fewer than all only where there are ties.
  int equal_left = rank + 1 -
                   static_cast<int>(std::count_if(candidates_, candidates_ + rank,
                                                  [&](uint32_t m) { return m > threshold; }));

  int at = 0;
  for (int i = 0; i < values && at < kept; ++i) {
    const uint32_t m = magnitudes[i];
    const int equal = (m == threshold) & (equal_left > 0);
    positions[at] = static_cast<uint16_t>(i);
    equal_left -= equal;
    at += (m > threshold) | equal;
  }
}

}  // namespace isthmus
