// The made-up model and differences that benchmarks of the codecs share.
#ifndef ISTHMUS_GPU_BENCH_DATA_H_
#define ISTHMUS_GPU_BENCH_DATA_H_

#include <cstdint>
#include <vector>

#include "compression/layout.h"

namespace isthmus {

// Tensors of up to a million values.
Layout BenchLayout(int64_t parameters);

// About normal differences, sums of four uniform numbers: the same on every machine.
std::vector<float> BenchDifferences(int64_t count, uint64_t seed);

}  // namespace isthmus

#endif  // ISTHMUS_GPU_BENCH_DATA_H_
