// Block apply in AVX-512.
#include "gpu/block_apply.h"

#if defined(__x86_64__) && defined(__GNUC__)

// GCC 12's header leaves lanes undefined that its own code then ignores, and warns of itself.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#define ISTHMUS_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

namespace isthmus {
namespace {

constexpr int kLanes = 16;

// sum · scale / weight, rounded as the division rounds. A product with the rounded reciprocal is off by less
// than two units in the last place; what it leaves of the sum is exact in a fused multiply-add, for the
// weight has at most 19 bits, and corrects it. A quotient of a sum below 2^53 is never half way between two
// doubles, nor nearer to that than 2^-20 of a unit, which is more than the correction's own error.
ISTHMUS_AVX512 inline __m256 Means(__m256i sums, const BlockStep& step) {
  const __m512d weight = _mm512_set1_pd(step.total_weight), reciprocal = _mm512_set1_pd(step.reciprocal);
  const __m512d sum = _mm512_cvtepi32_pd(sums);
  const __m512d near = _mm512_mul_pd(sum, reciprocal);
  const __m512d left = _mm512_fnmadd_pd(near, weight, sum);
  const __m512d quotient = _mm512_fmadd_pd(left, reciprocal, near);
  return _mm512_cvtpd_ps(_mm512_mul_pd(quotient, _mm512_set1_pd(step.scale)));
}

ISTHMUS_AVX512 inline __m512 Shift(__m512i sums, const BlockStep& step) {
  const __m256 low = Means(_mm512_castsi512_si256(sums), step);
  const __m256 high = Means(_mm512_extracti64x4_epi64(sums, 1), step);
  return _mm512_mul_ps(_mm512_set1_ps(step.rate), _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1));
}

template <bool kOneFactor>
ISTHMUS_AVX512 inline void Apply(const BlockStep& step, int32_t* sums, int values, float* anchor) {
  const __m512 factor = _mm512_set1_ps(step.factor);
  for (int i = 0; i < values; i += kLanes) {
    const __mmask16 there = static_cast<__mmask16>(values - i >= kLanes ? 0xFFFF : (1u << (values - i)) - 1);
    const __m512i sum = _mm512_maskz_loadu_epi32(there, sums + i);
    const __m512 shift = kOneFactor ? _mm512_mul_ps(_mm512_cvtepi32_ps(sum), factor) : Shift(sum, step);
    const __m512 moved = _mm512_sub_ps(_mm512_maskz_loadu_ps(there, anchor + i), shift);
    _mm512_mask_storeu_ps(anchor + i, there, moved);
    _mm512_mask_storeu_epi32(sums + i, there, _mm512_setzero_si512());
  }
}

ISTHMUS_AVX512 void BlockApply(const BlockStep& step, int32_t* sums, int values, float* anchor) {
  if (step.factor != 0) {
    Apply<true>(step, sums, values, anchor);
  } else {
    Apply<false>(step, sums, values, anchor);
  }
}

}  // namespace

BlockApplyFn BlockApplyAvx512() { return BlockApply; }

}  // namespace isthmus

#else

namespace isthmus {

BlockApplyFn BlockApplyAvx512() { return nullptr; }

}  // namespace isthmus

#endif
