// Range coding's writer in AVX-512: the eight states are the lanes of one vector.
#include "compression/rans_rows.h"

#if defined(__x86_64__) && defined(__GNUC__)

// GCC 12's header leaves lanes undefined that its own code then ignores, and warns of itself.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#define ISTHMUS_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,popcnt")))

namespace isthmus {
namespace {

constexpr int kFew = 32;  // symbols of a table, the frequent ones, that are had without a gather

// The numbers at `place` (0 … 31) after `from`.
ISTHMUS_AVX512 inline __m512i OfFew(const uint64_t* from, __m512i place) {
  const __mmask8 is_high = _mm512_test_epi64_mask(place, _mm512_set1_epi64(kFew / 2));
  const __m512i low =
      _mm512_permutex2var_epi64(_mm512_loadu_si512(from), place, _mm512_loadu_si512(from + 8));
  const __m512i high =
      _mm512_permutex2var_epi64(_mm512_loadu_si512(from + 16), place, _mm512_loadu_si512(from + 24));
  return _mm512_mask_mov_epi64(low, is_high, high);
}

ISTHMUS_AVX512 void PutRows(const RansWriterParts& parts, const RansSymbol* symbols, size_t rows,
                            uint32_t* states, char** word) {
  static_assert(sizeof(RansSymbol) == 2 && kRansLanes == 8, "a row is one vector");
  const __m512i lanes = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), low_16 = _mm512_set1_epi64(0xFFFF);
  const uint64_t* const inverses = parts.inverse.data();
  const uint64_t* const shares_of = parts.shares.data();
  __m512i state = _mm512_cvtepu32_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(states)));
  char* at = *word;
  for (size_t row = rows; row-- > 0;) {
    // Table in the low byte, symbol in the high one.
    const __m128i coded = _mm_loadu_si128(reinterpret_cast<const __m128i*>(symbols + row * kRansLanes));
    const uint8_t table = symbols[row * kRansLanes].table;
    const __m128i others = _mm_xor_si128(coded, _mm_set1_epi16(table));
    __m512i inverse, shares;
    if (_mm_test_epi16_mask(others, _mm_set1_epi16(static_cast<int16_t>(0xE0FF))) == 0) {
      // Few symbols of one table.
      const __m512i symbol = _mm512_cvtepu16_epi64(_mm_srli_epi16(coded, 8));
      inverse = OfFew(inverses + size_t{table} * kRansSymbols, symbol);
      shares = OfFew(shares_of + size_t{table} * kRansSymbols, symbol);
    } else {
      const __m128i swapped = _mm_or_si128(_mm_srli_epi16(coded, 8), _mm_slli_epi16(coded, 8));
      const __m512i place = _mm512_cvtepu16_epi64(swapped);
      inverse = _mm512_i64gather_epi64(place, inverses, sizeof(uint64_t));
      shares = _mm512_i64gather_epi64(place, shares_of, sizeof(uint64_t));
    }
    const __mmask8 flushed =
        _mm512_cmpge_epu64_mask(_mm512_srli_epi64(state, 32 - kRansBits), _mm512_srli_epi64(shares, 32));
    // The words given off, moved up to the end of the vector: what is before them is written over.
    const int count = __builtin_popcount(flushed);
    const __m512i given = _mm512_permutexvar_epi64(_mm512_add_epi64(lanes, _mm512_set1_epi64(count)),
                                                   _mm512_maskz_compress_epi64(flushed, state));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at - kRansWordSlack), _mm512_cvtepi64_epi16(given));
    at -= 2 * count;
    state = _mm512_mask_srli_epi64(state, flushed, state, 16);
    const __m512i quotient = _mm512_srli_epi64(_mm512_mullo_epi64(state, inverse), kRansInverseBits);
    const __m512i rest = _mm512_and_si512(_mm512_srli_epi64(shares, 16), low_16);
    const __m512i base = _mm512_add_epi64(state, _mm512_and_si512(shares, low_16));
    state = _mm512_add_epi64(base, _mm512_mul_epu32(quotient, rest));
  }
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(states), _mm512_cvtepi64_epi32(state));
  *word = at;
}

}  // namespace

RansPutRowsFn RansPutRowsAvx512() { return PutRows; }

}  // namespace isthmus

#else

namespace isthmus {

RansPutRowsFn RansPutRowsAvx512() { return nullptr; }

}  // namespace isthmus

#endif
