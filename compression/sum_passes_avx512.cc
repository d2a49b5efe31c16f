// The passes in AVX-512.
#include "compression/sum_passes.h"

#if defined(__x86_64__) && defined(__GNUC__)

// GCC 12's header leaves lanes undefined that its own code then ignores, and warns of itself.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#define ISTHMUS_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,bmi,bmi2,popcnt")))

namespace isthmus {
namespace {

constexpr int kLanes = 8;

// The first `count` lanes, or all.
ISTHMUS_AVX512 inline __mmask8 FirstOf(int count) {
  return count >= kLanes ? static_cast<__mmask8>(0xFF) : static_cast<__mmask8>((1u << count) - 1);
}

ISTHMUS_AVX512 uint64_t Any(const int64_t* sums, size_t count) {
  __m512i any[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
  size_t i = 0;
  for (; count - i >= 2 * kLanes; i += 2 * kLanes) {
    any[0] = _mm512_or_si512(any[0], _mm512_loadu_si512(sums + i));
    any[1] = _mm512_or_si512(any[1], _mm512_loadu_si512(sums + i + kLanes));
  }
  uint64_t bits = static_cast<uint64_t>(_mm512_reduce_or_epi64(_mm512_or_si512(any[0], any[1])));
  for (; i < count; ++i) bits |= static_cast<uint64_t>(sums[i]);
  return bits;
}

// Appends the low `count` bits of `bits`, whose others are 0; `signs` has room for a word more.
inline void AppendSigns(uint64_t bits, int count, SplitSums* out) {
  const int word = out->sign_count / 64, bit = out->sign_count % 64;
  out->signs[word] = (bit == 0 ? 0 : out->signs[word]) | bits << bit;
  if (bit + count > 64) out->signs[word + 1] = bits >> (64 - bit);
  out->sign_count += count;
}

ISTHMUS_AVX512 void Split(const int64_t* sums, int count, int zeros, SplitSums* out) {
  const __m128i shift = _mm_cvtsi32_si128(zeros);
  __m512i any = _mm512_setzero_si512();
  out->sign_count = 0;
  for (int from = 0; from < count; from += 64) {
    uint64_t negative = 0, some = 0;
    for (int i = from; i < std::min(from + 64, count); i += kLanes) {
      const __m512i sum = _mm512_maskz_loadu_epi64(FirstOf(count - i), sums + i);
      const __m512i magnitude = _mm512_srl_epi64(_mm512_abs_epi64(sum), shift);
      any = _mm512_or_si512(any, magnitude);
      _mm_store_si128(reinterpret_cast<__m128i*>(out->magnitudes + i), _mm512_cvtepi64_epi16(magnitude));
      negative |= uint64_t{_mm512_movepi64_mask(sum)} << (i - from);
      some |= uint64_t{_mm512_test_epi64_mask(sum, sum)} << (i - from);
    }
    if (some != 0) AppendSigns(_pext_u64(negative, some), static_cast<int>(_mm_popcnt_u64(some)), out);
  }
  out->any = static_cast<uint64_t>(_mm512_reduce_or_epi64(any));
}

ISTHMUS_AVX512 int CountFew(const uint16_t* magnitudes, int count, FewEntries* out) {
  constexpr int kWords = 32;  // magnitudes a vector
  const int vectors = (count + kWords - 1) / kWords;
  uint32_t left[kBlockValues / kWords];  // those without a place
  for (int v = 0; v < vectors; ++v) left[v] = ~uint32_t{0};
  if (count % kWords != 0) left[vectors - 1] = (uint32_t{1} << (count % kWords)) - 1;
  int first = 0;  // vector with any left
  for (int entry = 0;; ++entry) {
    while (first < vectors && left[first] == 0) ++first;
    if (first == vectors) return entry;
    if (entry == FewEntries::kMost) return 0;
    const uint16_t magnitude = magnitudes[kWords * first + __builtin_ctz(left[first])];
    const __m512i wanted = _mm512_set1_epi16(static_cast<int16_t>(magnitude));
    const __m256i place = _mm256_set1_epi8(static_cast<char>(entry));
    int found = 0;
    for (int v = first; v < vectors; ++v) {
      const __m512i these = _mm512_loadu_si512(magnitudes + kWords * v);
      const __mmask32 same = _mm512_mask_cmpeq_epi16_mask(left[v], these, wanted);
      auto* const places = reinterpret_cast<__m256i*>(out->places + kWords * v);
      _mm256_store_si256(places, _mm256_mask_mov_epi8(_mm256_load_si256(places), same, place));
      found += __builtin_popcount(same);
      left[v] &= ~same;
    }
    out->magnitudes[entry] = magnitude;
    out->counts[entry] = found;
  }
}

ISTHMUS_AVX512 void NameFew(const uint8_t* places, int count, uint8_t table, const uint8_t* ranks,
                            uint8_t* symbols) {
  constexpr int kPlaces = 16;
  const __m128i rank_of = _mm_loadu_si128(reinterpret_cast<const __m128i*>(ranks));
  const __m128i tables = _mm_set1_epi8(static_cast<char>(table));
  int i = 0;
  for (; i + kPlaces <= count; i += kPlaces) {
    const __m128i rank =
        _mm_shuffle_epi8(rank_of, _mm_load_si128(reinterpret_cast<const __m128i*>(places + i)));
    auto* const to = reinterpret_cast<__m128i*>(symbols + 2 * i);
    _mm_storeu_si128(to, _mm_unpacklo_epi8(tables, rank));
    _mm_storeu_si128(to + 1, _mm_unpackhi_epi8(tables, rank));
  }
  for (; i < count; ++i) {
    symbols[2 * i] = table;
    symbols[2 * i + 1] = ranks[places[i]];
  }
}

// At least 57 bits of the signs from `at` on.
inline uint64_t SignsFrom(const uint8_t* signs, size_t at) {
  uint64_t bits;
  std::memcpy(&bits, signs + at / 8, sizeof bits);
  return bits >> (at % 8);
}

// The first 32 magnitudes: most blocks have no more.
struct FewMagnitudes {
  static constexpr int kMost = 4 * kLanes;

  ISTHMUS_AVX512 explicit FewMagnitudes(const int64_t* magnitudes) {
    for (int i = 0; i < 4; ++i) of[i] = _mm512_loadu_si512(magnitudes + kLanes * i);
  }
  ISTHMUS_AVX512 __m512i Of(__m512i name) const {
    const __mmask8 is_high = _mm512_test_epi64_mask(name, _mm512_set1_epi64(2 * kLanes));
    return _mm512_mask_mov_epi64(_mm512_permutex2var_epi64(of[0], name, of[1]), is_high,
                                 _mm512_permutex2var_epi64(of[2], name, of[3]));
  }

  __m512i of[4];
};

// All 256: a gather takes several times as long.
struct ManyMagnitudes {
  ISTHMUS_AVX512 explicit ManyMagnitudes(const int64_t* magnitudes) : of(magnitudes) {}
  ISTHMUS_AVX512 __m512i Of(__m512i name) const { return _mm512_i64gather_epi64(name, of, sizeof(int64_t)); }

  const int64_t* of;
};

template <typename Magnitudes>
ISTHMUS_AVX512 inline bool LookUpIn(const uint8_t* names, int count, NamedSums* named, int64_t* sums) {
  const Magnitudes magnitudes(named->magnitudes);
  const __m512i known = _mm512_set1_epi64(named->known), zero = _mm512_setzero_si512();
  __mmask8 unknown = 0;
  size_t at = named->sign_at;
  for (int i = 0; i < count; i += kLanes) {
    const __mmask8 there = FirstOf(count - i);
    const __m512i name = _mm512_cvtepu8_epi64(_mm_maskz_loadu_epi8(there, names + i));
    unknown |= _mm512_mask_cmpge_epu64_mask(there, name, known);
    const __m512i magnitude = magnitudes.Of(name);
    uint64_t negative = SignsFrom(named->signs, at);
    if (named->has_zero) {
      const __mmask8 some = _mm512_mask_test_epi64_mask(there, magnitude, magnitude);
      negative = _pdep_u64(negative, some);
      at += static_cast<size_t>(__builtin_popcount(some));
    } else {
      at += static_cast<size_t>(std::min(count - i, kLanes));
    }
    const __m512i sum = _mm512_mask_sub_epi64(magnitude, static_cast<__mmask8>(negative), zero, magnitude);
    _mm512_mask_storeu_epi64(sums + i, there, sum);
  }
  named->sign_at = at;
  return unknown == 0;
}

ISTHMUS_AVX512 bool LookUp(const uint8_t* names, int count, NamedSums* named, int64_t* sums) {
  return named->known <= FewMagnitudes::kMost ? LookUpIn<FewMagnitudes>(names, count, named, sums)
                                              : LookUpIn<ManyMagnitudes>(names, count, named, sums);
}

// By way of a byte for each: bytes can be written without waiting for one another.
ISTHMUS_AVX512 void Mark(const uint32_t* places, size_t count, uint8_t* bytes, size_t byte_count) {
  constexpr uint32_t kMap = kBlockValues;
  alignas(64) uint8_t map[kMap] = {};
  uint64_t words[kMap / 64];
  for (size_t i = 0; i < count;) {
    const uint32_t begin = places[i] / kMap * kMap;
    for (; i < count && places[i] - begin < kMap; ++i) map[places[i] - begin] = 1;
    for (uint32_t word = 0; word < kMap / 64; ++word) {
      const __m512i is_set = _mm512_load_si512(map + 64 * word);
      words[word] = _mm512_test_epi8_mask(is_set, is_set);
      _mm512_store_si512(map + 64 * word, _mm512_setzero_si512());
    }
    std::memcpy(bytes + begin / 8, words, std::min(sizeof words, byte_count - begin / 8));
  }
}

ISTHMUS_AVX512 size_t Ones(const uint8_t* bytes, size_t count) {
  size_t ones = 0, at = 0;
  for (; count - at >= 8; at += 8) {
    uint64_t word;
    std::memcpy(&word, bytes + at, sizeof word);
    ones += static_cast<size_t>(_mm_popcnt_u64(word));
  }
  for (; at < count; ++at) ones += static_cast<size_t>(__builtin_popcount(bytes[at]));
  return ones;
}

ISTHMUS_AVX512 void Places(const uint8_t* bytes, size_t count, size_t ones, uint32_t* out) {
  constexpr int kPlaces = 16;  // at a time
  __m512i place = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  uint32_t* const end = out + ones;
  for (size_t at = 0; at < count; at += 2) {
    const unsigned bits = bytes[at] | (at + 1 < count ? unsigned{bytes[at + 1]} << 8 : 0);
    const int set = __builtin_popcount(bits);
    const __m512i places = _mm512_maskz_compress_epi32(static_cast<__mmask16>(bits), place);
    if (end - out >= kPlaces) {
      _mm512_storeu_si512(out, places);
    } else {
      _mm512_mask_storeu_epi32(out, static_cast<__mmask16>((1u << set) - 1), places);
    }
    out += set;
    place = _mm512_add_epi32(place, _mm512_set1_epi32(kPlaces));
  }
}

constexpr SumPasses kPasses{Any, Split, CountFew, NameFew, LookUp, Mark, Ones, Places};

}  // namespace

const SumPasses* Avx512SumPasses() { return &kPasses; }

}  // namespace isthmus

#else

namespace isthmus {

const SumPasses* Avx512SumPasses() { return nullptr; }

}  // namespace isthmus

#endif
