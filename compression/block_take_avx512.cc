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

// Sixteen values' 64-bit numbers, those marked first.
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
  const __m128i shift = _mm_cvtsi32_si128(sums.shift);
  const __m512i first = _mm512_cvtepi32_epi64(_mm512_castsi512_si256(all));
  const __m512i second = _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(all, 1));
  _mm512_storeu_si512(out, _mm512_sll_epi64(first, shift));
  _mm512_storeu_si512(out + 8, _mm512_sll_epi64(second, shift));
}

ISTHMUS_AVX512 int BlockTake(const BlockSums& sums, const TakenSums& out) {
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
