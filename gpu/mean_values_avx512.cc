// The means in AVX-512.
#include "gpu/mean_values.h"

#if defined(__x86_64__) && defined(__GNUC__)

// GCC 12's header leaves lanes undefined that its own code then ignores, and warns of itself.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#define ISTHMUS_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

namespace isthmus {
namespace {

constexpr int kLanes = 8;

ISTHMUS_AVX512 void MeanValues(const MeanScale& scale, const int64_t* sums, const int32_t* weights, int count,
                               float* means) {
  const __m512d of_scale = _mm512_set1_pd(scale.scale);
  for (int at = 0; at < count; at += kLanes) {
    const int left = count - at;
    const __mmask8 there = static_cast<__mmask8>(left >= kLanes ? 0xFF : (1u << left) - 1);
    __mmask8 divided = there;
    __m512d weight = _mm512_set1_pd(scale.total_weight);
    if (weights != nullptr) {
      const __m256i integers = _mm256_maskz_loadu_epi32(there, weights + at);
      weight = _mm512_cvtepi32_pd(integers);
      divided = _mm256_cmpneq_epi32_mask(integers, _mm256_setzero_si256());
    }
    const __m512d sum = _mm512_cvtepi64_pd(_mm512_maskz_loadu_epi64(there, sums + at));
    const __m512d mean = _mm512_maskz_div_pd(divided, _mm512_mul_pd(sum, of_scale), weight);
    _mm256_mask_storeu_ps(means + at, there, _mm512_cvtpd_ps(mean));
  }
}

}  // namespace

MeanValuesFn MeanValuesAvx512() { return MeanValues; }

}  // namespace isthmus

#else

namespace isthmus {

MeanValuesFn MeanValuesAvx512() { return nullptr; }

}  // namespace isthmus

#endif
