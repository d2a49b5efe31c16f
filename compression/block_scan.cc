#include "compression/block_scan.h"

namespace isthmus {

const BlockScan* BlockScanOf(SimdPath path) {
  if (!HasSimdPath(path)) return nullptr;
  switch (path) {
    case SimdPath::kPortable:
      return nullptr;
    case SimdPath::kAvx2:
      return Avx2BlockScan();
    case SimdPath::kAvx512:
      return Avx512BlockScan();
  }
  return nullptr;
}

}  // namespace isthmus
