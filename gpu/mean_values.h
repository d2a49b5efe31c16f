// From integer sums to the means an apply moves by (ROUNDS §8 "Apply"): u = float(sum · 2^E / weight).
//
// The same bits from every path: each operation is a single IEEE one. Needs plain float mode.
#ifndef ISTHMUS_GPU_MEAN_VALUES_H_
#define ISTHMUS_GPU_MEAN_VALUES_H_

#include <cstdint>

#include "compression/simd_path.h"

namespace isthmus {

// What all sums of a tensor share. Products with the scale are exact: a sum has at most 52 bits and the scale
// is a power of two far from double's ends.
struct MeanScale {
  double scale = 1;         // 2^E
  double total_weight = 1;  // divides where there are no weights
};

// Writes `count` means. `weights` may be null; a weight of 0 gives 0.
using MeanValuesFn = void (*)(const MeanScale& scale, const int64_t* sums, const int32_t* weights, int count,
                              float* means);

// That of the path, or the portable one where it has none of its own or the processor lacks it.
MeanValuesFn MeanValuesOf(SimdPath path);

void MeanValuesPortable(const MeanScale& scale, const int64_t* sums, const int32_t* weights, int count,
                        float* means);
// Null in builds for other processors.
MeanValuesFn MeanValuesAvx512();

}  // namespace isthmus

#endif  // ISTHMUS_GPU_MEAN_VALUES_H_
