#include "compression/rans_rows.h"

namespace isthmus {

void RansPutRowsPortable(const RansWriterParts& parts, const RansSymbol* symbols, size_t rows,
                         uint32_t* states, char** word) {
  for (size_t row = rows; row-- > 0;) {
    const RansSymbol* const of_row = symbols + row * kRansLanes;
    for (size_t lane = kRansLanes; lane-- > 0;) {
      states[lane] = RansPut(parts, of_row[lane], states[lane], word);
    }
  }
}

RansPutRowsFn RansPutRowsOf(SimdPath path) {
  const bool fast = path == SimdPath::kAvx512 && HasSimdPath(path) && RansPutRowsAvx512() != nullptr;
  return fast ? RansPutRowsAvx512() : RansPutRowsPortable;
}

}  // namespace isthmus
