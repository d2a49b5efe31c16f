// Taking in AVX-512.
#include "compression/block_take.h"

#if defined(__x86_64__) && defined(__GNUC__)

// GCC 12's header leaves lanes undefined that its own code then ignores, and warns of itself.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#define ISTHMUS_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,popcnt")))

namespace isthmus {
namespace {

constexpr int kLanes = 16;

// Sixteen values' numbers as 64 bits.
ISTHMUS_AVX512 inline void StoreWide(__m512i narrow, __m128i shift, int64_t* out) {
  const __m512i first = _mm512_cvtepi32_epi64(_mm512_castsi512_si256(narrow));
  const __m512i second = _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(narrow, 1));
  _mm512_storeu_si512(out, _mm512_sll_epi64(first, shift));
  _mm512_storeu_si512(out + 8, _mm512_sll_epi64(second, shift));
}

// Those marked first.
ISTHMUS_AVX512 inline void StoreSums(const BlockSums& sums, int i, __mmask16 marked, int64_t* out) {
  if (sums.narrow == nullptr) {
    const __mmask8 low = static_cast<__mmask8>(marked), high = static_cast<__mmask8>(marked >> 8);
    const __m512i first = _mm512_load_si512(sums.wide + i), second = _mm512_load_si512(sums.wide + i + 8);
    // Compressed in the register: straight to memory is slow on some processors.
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi64(low, first));
    _mm512_storeu_si512(out + __builtin_popcount(low), _mm512_maskz_compress_epi64(high, second));
    return;
  }
  const __m512i all = _mm512_maskz_compress_epi32(marked, _mm512_loadu_si512(sums.narrow + i));
  StoreWide(all, _mm_cvtsi32_si128(sums.shift), out);
}

ISTHMUS_AVX512 int TakePairs(const BlockSums& sums, const TakenSums& out) {
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __m512i positions = _mm512_add_epi32(lanes, _mm512_set1_epi32(static_cast<int>(sums.from)));
  const __m128i shift = _mm_cvtsi32_si128(sums.shift);
  const __m512i above_less_below = _mm512_set1_epi32(static_cast<int>(0xFFFF0001u));  // 1 and −1
  int count = 0;
  for (int i = 0; i < sums.values; i += kLanes) {
    const __m512i pairs = _mm512_loadu_si512(sums.pairs + 2 * i);
    const __mmask16 sent = _mm512_test_epi32_mask(pairs, pairs);
    const __m512i sum = _mm512_madd_epi16(pairs, above_less_below);
    _mm512_storeu_si512(out.positions + count, _mm512_maskz_compress_epi32(sent, positions));
    StoreWide(_mm512_maskz_compress_epi32(sent, sum), shift, out.sums + count);
    count += __builtin_popcount(sent);
    positions = _mm512_add_epi32(positions, _mm512_set1_epi32(kLanes));
  }
  return count;
}

ISTHMUS_AVX512 int BlockTake(const BlockSums& sums, const TakenSums& out) {
  if (sums.pairs != nullptr) return TakePairs(sums, out);
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __m512i positions = _mm512_add_epi32(lanes, _mm512_set1_epi32(static_cast<int>(sums.from)));
  int count = 0;
  for (int word = 0; word < kSumMarkWords; ++word) {
    for (int part = 0; part < 64; part += kLanes) {
      const __mmask16 marked = static_cast<__mmask16>(sums.marks[word] >> part);
      const int i = 64 * word + part;
      if (marked != 0) {
        _mm512_storeu_si512(out.positions + count, _mm512_maskz_compress_epi32(marked, positions));
        StoreSums(sums, i, marked, out.sums + count);
        if (out.weights != nullptr) {
          _mm512_storeu_si512(out.weights + count,
                              _mm512_maskz_compress_epi32(marked, _mm512_load_si512(sums.weights + i)));
        }
        count += __builtin_popcount(marked);
      }
      positions = _mm512_add_epi32(positions, _mm512_set1_epi32(kLanes));
    }
  }
  return count;
}

}  // namespace

BlockTakeFn BlockTakeAvx512() { return &BlockTake; }

}  // namespace isthmus

#else

namespace isthmus {

BlockTakeFn BlockTakeAvx512() { return nullptr; }

}  // namespace isthmus

#endif
