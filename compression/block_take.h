// From a block's sums and marks to positions and sums one after another, as an Update has them.
//
// The same numbers from every path.
#ifndef ISTHMUS_COMPRESSION_BLOCK_TAKE_H_
#define ISTHMUS_COMPRESSION_BLOCK_TAKE_H_

#include <cstdint>

#include "compression/simd_path.h"
#include "compression/tensor_sum.h"

namespace isthmus {

// Where they go; weights may be null. Up to kTakeSlack places after the last one may be written too.
struct TakenSums {
  uint32_t* positions = nullptr;  // in the tensor
  int64_t* sums = nullptr;
  int32_t* weights = nullptr;
};
inline constexpr int kTakeSlack = 16;

// Writes what is marked, or has a pair that is not 0, in order; how many.
using BlockTakeFn = int (*)(const BlockSums& sums, const TakenSums& out);

// That of the path, or the portable one where it has none of its own or the processor lacks it.
BlockTakeFn BlockTakeOf(SimdPath path);

int BlockTakePortable(const BlockSums& sums, const TakenSums& out);
// Null in builds for other processors.
BlockTakeFn BlockTakeAvx512();

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_BLOCK_TAKE_H_
