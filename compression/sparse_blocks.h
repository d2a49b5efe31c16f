// How a tensor falls into blocks. Header-only, pure.
#ifndef ISTHMUS_COMPRESSION_SPARSE_BLOCKS_H_
#define ISTHMUS_COMPRESSION_SPARSE_BLOCKS_H_

#include <algorithm>
#include <cstdint>

#include "compression/layout.h"
#include "compression/selection.h"

namespace isthmus {

constexpr int64_t BlocksOf(int64_t values) { return (values + kBlockValues - 1) / kBlockValues; }

// Calls visit(first value, values in block, kept values) for each block of a tensor, in order.
template <typename Visit>
void ForEachBlock(int64_t tensor_values, int k, Visit visit) {
  for (int64_t at = 0; at < tensor_values; at += kBlockValues) {
    const int64_t values = std::min(kBlockValues, tensor_values - at);
    visit(at, values, KeptValues(k, values));
  }
}

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_SPARSE_BLOCKS_H_
