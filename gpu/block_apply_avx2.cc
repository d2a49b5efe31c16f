// Block apply in AVX2.
#include "gpu/block_apply.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define ISTHMUS_AVX2 __attribute__((target("avx2")))

namespace isthmus {
namespace {

constexpr int kLanes = 8;

ISTHMUS_AVX2 inline __m128 Means(__m128i sums, const BlockStep& step) {
  const __m256d scaled = _mm256_mul_pd(_mm256_cvtepi32_pd(sums), _mm256_set1_pd(step.scale));
  return _mm256_cvtpd_ps(_mm256_div_pd(scaled, _mm256_set1_pd(step.total_weight)));
}

ISTHMUS_AVX2 inline __m256 Shift(__m256i sums, const BlockStep& step) {
  const __m128 low = Means(_mm256_castsi256_si128(sums), step);
  const __m128 high = Means(_mm256_extracti128_si256(sums, 1), step);
  return _mm256_mul_ps(_mm256_set1_ps(step.rate), _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1));
}

ISTHMUS_AVX2 void BlockApply(const BlockStep& step, int32_t* sums, int values, float* anchor) {
  const __m256 factor = _mm256_set1_ps(step.factor);
  const bool one_factor = step.factor != 0;
  int i = 0;
  for (; values - i >= kLanes; i += kLanes) {
    const __m256i sum = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums + i));
    const __m256 shift = one_factor ? _mm256_mul_ps(_mm256_cvtepi32_ps(sum), factor) : Shift(sum, step);
    _mm256_storeu_ps(anchor + i, _mm256_sub_ps(_mm256_loadu_ps(anchor + i), shift));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + i), _mm256_setzero_si256());
  }
  BlockApplyPortable(step, sums + i, values - i, anchor + i);
}

}  // namespace

BlockApplyFn BlockApplyAvx2() { return BlockApply; }

}  // namespace isthmus

#else

namespace isthmus {

BlockApplyFn BlockApplyAvx2() { return nullptr; }

}  // namespace isthmus

#endif
