// What writer and reader of updates share: constants of the format, and their memory.
#ifndef ISTHMUS_COMPRESSION_UPDATE_PARTS_H_
#define ISTHMUS_COMPRESSION_UPDATE_PARTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compression/sealed_bytes.h"
#include "compression/sum_code.h"
#include "compression/update.h"
#include "compression/update_streams.h"

namespace isthmus {

inline constexpr SealKind kUpdateSeal{"update", "ISUP"};
inline constexpr int kSumPlanes = 7,
                     kWeightPlanes = 3;       // bytes of a dense sum, two's complement, and of its weight
inline constexpr uint8_t kBitmapFlag = 0x80;  // beside a form: positions are a bitmap

// One past the last of the positions from `first` on that are in its block.
inline size_t BlockEnd(const std::vector<uint32_t>& positions, size_t first) {
  const uint64_t end = (positions[first] / kBlockValues + 1) * kBlockValues;
  const auto begin = positions.begin() + static_cast<ptrdiff_t>(first);
  const auto most = begin + std::min<ptrdiff_t>(kBlockValues, positions.end() - begin);
  return static_cast<size_t>(std::lower_bound(begin, most, end) - positions.begin());
}

struct UpdateScratch::Memory {
  explicit Memory(SimdPath path_) : path(path_) {}

  const SimdPath path;
  UpdateStreams<std::string> streams;  // raw
  SumWriter writer{&streams.sums, path};
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_UPDATE_PARTS_H_
