// Moves a block of the anchor by its sums (ROUNDS §8 "Apply", plain form): what an apply does while a sum is
// made, instead of from a finished Update.
//
// The same bits from every path and as from ApplyToAnchor. Needs plain float mode.
#ifndef ISTHMUS_GPU_BLOCK_APPLY_H_
#define ISTHMUS_GPU_BLOCK_APPLY_H_

#include <cstdint>

#include "compression/simd_path.h"

namespace isthmus {

// What all of a block's values share.
struct BlockStep {
  double scale = 1;         // 2^E a sum is worth
  double total_weight = 1;  // 1 … 2^18, an integer
  double reciprocal = 1;    // of it, rounded
  float rate = 1;           // finite and not below 0
  // Where not 0: rate · float(sum · scale / total_weight) is float(sum) · factor, rounded once.
  float factor = 0;

  // For sums below 2^31 worth 2^exponent each.
  static BlockStep Of(int exponent, int64_t total_weight, float rate);
};

struct BlockApply {
  // anchor[i] ← anchor[i] − rate · float(sums[i] · scale / total_weight), and sums[i] ← 0.
  void (*narrow)(const BlockStep& step, int32_t* sums, int values, float* anchor);
  // The same of sums that are pairs[2i] − pairs[2i + 1].
  void (*pairs)(const BlockStep& step, int16_t* pairs, int values, float* anchor);
};

// That of the path, or the portable one where build or processor lack it.
const BlockApply& BlockApplyOf(SimdPath path);

const BlockApply& BlockApplyPortable();
// Null in builds for other processors.
const BlockApply* BlockApplyAvx2();
const BlockApply* BlockApplyAvx512();

}  // namespace isthmus

#endif  // ISTHMUS_GPU_BLOCK_APPLY_H_
