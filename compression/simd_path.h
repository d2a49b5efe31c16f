// Which of the processor's vector instructions a computation uses; results are the same bits on each.
#ifndef ISTHMUS_COMPRESSION_SIMD_PATH_H_
#define ISTHMUS_COMPRESSION_SIMD_PATH_H_

#include <cstdint>

namespace isthmus {

enum class SimdPath : uint8_t {
  kPortable = 0,  // plain C++: the oracle, and what other processors run
  kAvx2 = 1,
  kAvx512 = 2,  // F, BW, DQ and VL
};

inline constexpr SimdPath kAllSimdPaths[] = {SimdPath::kPortable, SimdPath::kAvx2, SimdPath::kAvx512};

// Whether this processor, its operating system and this build have the path.
bool HasSimdPath(SimdPath path);

// The fastest one there is.
SimdPath BestSimdPath();

// "portable", "avx2", "avx512".
const char* SimdPathName(SimdPath path);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_SIMD_PATH_H_
