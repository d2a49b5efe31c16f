#include "compression/simd_path.h"

namespace isthmus {

bool HasSimdPath(SimdPath path) {
  if (path == SimdPath::kPortable) return true;
#if defined(__x86_64__) && defined(__GNUC__)
  const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("popcnt");
  if (path == SimdPath::kAvx2) return avx2;
  return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

SimdPath BestSimdPath() {
  if (HasSimdPath(SimdPath::kAvx512)) return SimdPath::kAvx512;
  return HasSimdPath(SimdPath::kAvx2) ? SimdPath::kAvx2 : SimdPath::kPortable;
}

const char* SimdPathName(SimdPath path) {
  switch (path) {
    case SimdPath::kPortable:
      return "portable";
    case SimdPath::kAvx2:
      return "avx2";
    case SimdPath::kAvx512:
      return "avx512";
  }
  return "unknown";
}

}  // namespace isthmus
