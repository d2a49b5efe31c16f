// Block apply in AVX2.
#include "gpu/block_apply.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <algorithm>

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

// How the sums of values are kept: how to take kLanes of them, and leave zeros; and who does the rest.
struct Narrow {
  using Sum = int32_t;
  static constexpr int kSumsAValue = 1;
  ISTHMUS_AVX2 static __m256i Of(__m256i sums) { return sums; }
  static void Rest(const BlockStep& step, Sum* sums, int values, float* anchor) {
    BlockApplyPortable().narrow(step, sums, values, anchor);
  }
};

struct Pairs {
  using Sum = int16_t;
  static constexpr int kSumsAValue = 2;
  ISTHMUS_AVX2 static __m256i Of(__m256i pairs) {
    constexpr int kFirstLessSecond = static_cast<int>(0xFFFF0001);  // 1 and −1
    return _mm256_madd_epi16(pairs, _mm256_set1_epi32(kFirstLessSecond));
  }
  static void Rest(const BlockStep& step, Sum* pairs, int values, float* anchor) {
    BlockApplyPortable().pairs(step, pairs, values, anchor);
  }
};

template <typename Kind>
ISTHMUS_AVX2 void Apply(const BlockStep& step, typename Kind::Sum* sums, int values, float* anchor) {
  const __m256 factor = _mm256_set1_ps(step.factor);
  const bool one_factor = step.factor != 0;
  // First as many as make the anchor's vectors begin with one.
  int i = std::min(values, static_cast<int>(-(reinterpret_cast<uintptr_t>(anchor) / sizeof(float)) % kLanes));
  Kind::Rest(step, sums, i, anchor);
  for (; values - i >= kLanes; i += kLanes) {
    __m256i* at = reinterpret_cast<__m256i*>(sums + Kind::kSumsAValue * i);
    const __m256i sum = Kind::Of(_mm256_loadu_si256(at));
    const __m256 shift = one_factor ? _mm256_mul_ps(_mm256_cvtepi32_ps(sum), factor) : Shift(sum, step);
    _mm256_storeu_ps(anchor + i, _mm256_sub_ps(_mm256_loadu_ps(anchor + i), shift));
    _mm256_storeu_si256(at, _mm256_setzero_si256());
  }
  Kind::Rest(step, sums + Kind::kSumsAValue * i, values - i, anchor + i);
}

constexpr BlockApply kApply{Apply<Narrow>, Apply<Pairs>};

}  // namespace

const BlockApply* BlockApplyAvx2() { return &kApply; }

}  // namespace isthmus

#else

namespace isthmus {

const BlockApply* BlockApplyAvx2() { return nullptr; }

}  // namespace isthmus

#endif
