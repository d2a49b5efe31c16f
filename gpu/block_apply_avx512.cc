// Block apply in AVX-512.
#include "gpu/block_apply.h"

#if defined(__x86_64__) && defined(__GNUC__)

// GCC 12's header leaves lanes undefined that its own code then ignores, and warns of itself.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <algorithm>

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

// How the sums of values are kept: how to take kLanes of them, and leave zeros.
struct Narrow {
  using Sum = int32_t;
  ISTHMUS_AVX512 static __m512i Take(__mmask16 there, Sum* sums, int i) {
    const __m512i sum = _mm512_maskz_loadu_epi32(there, sums + i);
    _mm512_mask_storeu_epi32(sums + i, there, _mm512_setzero_si512());
    return sum;
  }
};

struct Pairs {
  using Sum = int16_t;
  ISTHMUS_AVX512 static __m512i Take(__mmask16 there, Sum* pairs, int i) {
    const __m512i both = _mm512_maskz_loadu_epi32(there, pairs + 2 * i);
    _mm512_mask_storeu_epi32(pairs + 2 * i, there, _mm512_setzero_si512());
    constexpr int kFirstLessSecond = static_cast<int>(0xFFFF0001);  // 1 and −1
    return _mm512_madd_epi16(both, _mm512_set1_epi32(kFirstLessSecond));
  }
};

template <typename Kind, bool kOneFactor>
ISTHMUS_AVX512 inline void Apply(const BlockStep& step, typename Kind::Sum* sums, int values, float* anchor) {
  const __m512 factor = _mm512_set1_ps(step.factor);
  // First as many as make the anchor's vectors begin with a line.
  int lanes = kLanes - static_cast<int>(reinterpret_cast<uintptr_t>(anchor) / sizeof(float) % kLanes);
  for (int i = 0; i < values; i += lanes, lanes = kLanes) {
    const __mmask16 there = static_cast<__mmask16>((1u << std::min(lanes, values - i)) - 1);
    const __m512i sum = Kind::Take(there, sums, i);
    const __m512 shift = kOneFactor ? _mm512_mul_ps(_mm512_cvtepi32_ps(sum), factor) : Shift(sum, step);
    const __m512 moved = _mm512_sub_ps(_mm512_maskz_loadu_ps(there, anchor + i), shift);
    _mm512_mask_storeu_ps(anchor + i, there, moved);
  }
}

template <typename Kind>
ISTHMUS_AVX512 void ApplyBlock(const BlockStep& step, typename Kind::Sum* sums, int values, float* anchor) {
  if (step.factor != 0) {
    Apply<Kind, true>(step, sums, values, anchor);
  } else {
    Apply<Kind, false>(step, sums, values, anchor);
  }
}

constexpr BlockApply kApply{ApplyBlock<Narrow>, ApplyBlock<Pairs>};

}  // namespace

const BlockApply* BlockApplyAvx512() { return &kApply; }

}  // namespace isthmus

#else

namespace isthmus {

const BlockApply* BlockApplyAvx512() { return nullptr; }

}  // namespace isthmus

#endif
