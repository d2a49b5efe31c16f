// The passes in AVX-512. Not fused multiply-adds but single operations, as everywhere.
#include "compression/block_scan.h"

#if defined(__x86_64__) && defined(__GNUC__)

// GCC 12's header leaves lanes undefined that its own code then ignores, and warns of itself.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#define ISTHMUS_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,bmi,popcnt")))

namespace isthmus {
namespace {

constexpr int kLanes = 16;

// The lanes of a vector that begins `left` values before the end.
ISTHMUS_AVX512 inline __mmask16 LanesOf(int left) {
  return left >= kLanes ? 0xFFFF : static_cast<__mmask16>((1u << (left > 0 ? left : 0)) - 1);
}

ISTHMUS_AVX512 inline __m512i Magnitude(__m512i bits) {
  return _mm512_and_si512(bits, _mm512_set1_epi32(0x7FFFFFFF));
}

// What a pass carries from vector to vector.
struct Pass {
  __m512i threshold, largest;
};

// One vector of values, `lanes` of them there; the marks.
ISTHMUS_AVX512 inline uint64_t DifferenceVector(const float* anchor, const float* parameters, __mmask16 lanes,
                                                float* differences, Pass* pass) {
  const __m512 d =
      _mm512_sub_ps(_mm512_maskz_loadu_ps(lanes, anchor), _mm512_maskz_loadu_ps(lanes, parameters));
  _mm512_store_ps(differences, d);
  const __m512i magnitude = Magnitude(_mm512_castps_si512(d));
  pass->largest = _mm512_max_epi32(pass->largest, magnitude);
  return _mm512_mask_cmpge_epi32_mask(lanes, magnitude, pass->threshold);
}

ISTHMUS_AVX512 ScanResult Difference(const float* anchor, const float* parameters, int values,
                                     uint32_t threshold, float* differences, uint64_t* marks) {
  Pass pass{_mm512_set1_epi32(static_cast<int>(threshold)), _mm512_setzero_si512()};
  ScanResult result;
  for (int word = 0; word < kMarkWords; ++word) {
    uint64_t mark = 0;
    const int at = 64 * word;
    if (at + 64 <= values) {
      for (int v = 0; v < 64; v += kLanes) {
        // The next block is on its way while this one's candidates are sorted out.
        _mm_prefetch(reinterpret_cast<const char*>(anchor + at + v + kBlockValues), _MM_HINT_T1);
        _mm_prefetch(reinterpret_cast<const char*>(parameters + at + v + kBlockValues), _MM_HINT_T1);
        mark |= DifferenceVector(anchor + at + v, parameters + at + v, 0xFFFF, differences + at + v, &pass)
                << v;
      }
    } else {
      for (int v = 0; v < 64 && at + v < values; v += kLanes) {
        mark |= DifferenceVector(anchor + at + v, parameters + at + v, LanesOf(values - at - v),
                                 differences + at + v, &pass)
                << v;
      }
    }
    marks[word] = mark;
    result.marked += __builtin_popcountll(mark);
  }
  alignas(64) uint32_t largest[kLanes];
  _mm512_store_si512(largest, pass.largest);
  result.largest = *std::max_element(largest, largest + kLanes);
  return result;
}

ISTHMUS_AVX512 int Mark(const float* differences, int values, uint32_t threshold, uint64_t* marks) {
  const __m512i least = _mm512_set1_epi32(static_cast<int>(threshold));
  int marked = 0;
  for (int word = 0; word < kMarkWords; ++word) {
    uint64_t mark = 0;
    for (int v = 0; v < 64; v += kLanes) {
      const int at = 64 * word + v;
      const __m512i d = _mm512_load_si512(differences + at);
      mark |= uint64_t{_mm512_mask_cmpge_epi32_mask(LanesOf(values - at), Magnitude(d), least)} << v;
    }
    marks[word] = mark;
    marked += __builtin_popcountll(mark);
  }
  return marked;
}

// One after another: faster where most vectors hold nothing.
ISTHMUS_AVX512 int GatherFew(const float* differences, const uint64_t* marks, Candidates* out) {
  constexpr int kAtOnce = 4;  // written whether there or not: hardly any word has more
  int count = 0;
  for (int word = 0; word < kMarkWords; ++word) {
    uint64_t mark = marks[word];
    const int marked = __builtin_popcountll(mark);
    int done = 0;
    do {
      for (int i = 0; i < kAtOnce; ++i) {
        const uint32_t at = (64 * word + static_cast<int>(_tzcnt_u64(mark))) % kBlockValues;
        out->positions[count + done + i] = at;
        std::memcpy(&out->bits[count + done + i], &differences[at], sizeof(float));
        mark = _blsr_u64(mark);
      }
      done += kAtOnce;
    } while (done < marked);
    count += marked;
  }
  return count;
}

ISTHMUS_AVX512 int GatherMany(const float* differences, const uint64_t* marks, Candidates* out) {
  const __m512i steps = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  int count = 0;
  for (int at = 0; at < kBlockValues; at += kLanes) {
    const __mmask16 lanes = static_cast<__mmask16>(marks[at / 64] >> (at % 64));
    // Compressed in the register: straight to memory is slow on some processors.
    _mm512_storeu_si512(out->positions + count,
                        _mm512_maskz_compress_epi32(lanes, _mm512_add_epi32(_mm512_set1_epi32(at), steps)));
    _mm512_storeu_si512(out->bits + count,
                        _mm512_maskz_compress_epi32(lanes, _mm512_load_si512(differences + at)));
    count += __builtin_popcount(lanes);
  }
  return count;
}

ISTHMUS_AVX512 void Gather(const float* differences, const uint64_t* marks, int marked, Candidates* out) {
  constexpr int kMany = kBlockValues / 16;
  out->count = marked > kMany ? GatherMany(differences, marks, out) : GatherFew(differences, marks, out);
}

ISTHMUS_AVX512 int Count(const Candidates& candidates, uint32_t threshold) {
  const __m512i least = _mm512_set1_epi32(static_cast<int>(threshold));
  int count = 0;
  for (int at = 0; at < candidates.count; at += kLanes) {
    const __m512i magnitude = Magnitude(_mm512_load_si512(candidates.bits + at));
    count +=
        __builtin_popcount(_mm512_mask_cmpge_epi32_mask(LanesOf(candidates.count - at), magnitude, least));
  }
  return count;
}

ISTHMUS_AVX512 void Keep(const Candidates& candidates, uint32_t threshold, uint16_t* positions,
                         float* differences, float* magnitudes) {
  const __m512i least = _mm512_set1_epi32(static_cast<int>(threshold));
  int kept = 0;
  for (int at = 0; at < candidates.count; at += kLanes) {
    const __m512i d = _mm512_load_si512(candidates.bits + at);
    const __mmask16 lanes = _mm512_mask_cmpge_epi32_mask(LanesOf(candidates.count - at), Magnitude(d), least);
    const __m512i where = _mm512_maskz_compress_epi32(lanes, _mm512_load_si512(candidates.positions + at));
    const __m512i kept_d = _mm512_maskz_compress_epi32(lanes, d);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(positions + kept), _mm512_cvtepi32_epi16(where));
    _mm512_storeu_si512(differences + kept, kept_d);
    _mm512_storeu_si512(magnitudes + kept, Magnitude(kept_d));
    kept += __builtin_popcount(lanes);
  }
}

ISTHMUS_AVX512 void Signs(const float* differences, int count, uint64_t* out) {
  for (int word = 0; 64 * word < count; ++word) {
    uint64_t signs = 0;
    for (int v = 0; v < 64; v += kLanes) {
      const int at = 64 * word + v;
      const __mmask16 there = LanesOf(count - at);
      const __m512 d = _mm512_maskz_loadu_ps(there, differences + at);
      signs |= uint64_t{_mm512_cmp_ps_mask(d, _mm512_setzero_ps(), _CMP_LT_OQ)} << v;
    }
    out[word] = signs;
  }
}

ISTHMUS_AVX512 int ClassSum(const float* magnitudes, const uint8_t* classes, int count, uint8_t which,
                            double* lanes) {
  __m512d sums = _mm512_loadu_pd(lanes);
  int in_class = 0;
  for (int at = 0; at < count; at += 8) {
    const __mmask8 there = static_cast<__mmask8>(LanesOf(count - at));
    const __m128i theirs = _mm_maskz_loadu_epi8(there, classes + at);
    const __mmask8 in = static_cast<__mmask8>(_mm_mask_cmpeq_epi8_mask(there, theirs, _mm_set1_epi8(which)));
    // As the portable path does, adds 0 where a value is of another class.
    const __m256 floats = _mm256_maskz_loadu_ps(in, magnitudes + at);
    sums = _mm512_mask_add_pd(sums, there, sums, _mm512_cvtps_pd(floats));
    in_class += __builtin_popcount(in);
  }
  _mm512_storeu_pd(lanes, sums);
  return in_class;
}

ISTHMUS_AVX512 void ClassSplit(const float* magnitudes, int count, const double* levels, uint8_t* classes) {
  const __m512d of_class = _mm512_castpd256_pd512(_mm256_loadu_pd(levels));
  for (int at = 0; at < count; at += 8) {
    const __mmask8 there = static_cast<__mmask8>(LanesOf(count - at));
    const __m512i before = _mm512_cvtepu8_epi64(_mm_maskz_loadu_epi8(there, classes + at));
    const __m512d level = _mm512_permutexvar_pd(before, of_class);
    const __m512d magnitude = _mm512_cvtps_pd(_mm256_maskz_loadu_ps(there, magnitudes + at));
    const __mmask8 above = _mm512_cmp_pd_mask(magnitude, level, _CMP_GT_OQ);
    const __m512i twice = _mm512_add_epi64(before, before);
    _mm512_mask_cvtepi64_storeu_epi8(classes + at, there,
                                     _mm512_mask_add_epi64(twice, above, twice, _mm512_set1_epi64(1)));
  }
}

ISTHMUS_AVX512 void ClassAssign(const float* magnitudes, int count, const double* bounds, uint8_t* classes) {
  const __m512d first = _mm512_set1_pd(bounds[0]), second = _mm512_set1_pd(bounds[1]);
  const __m512d third = _mm512_set1_pd(bounds[2]);
  const __m128i one = _mm_set1_epi8(1);
  for (int at = 0; at < count; at += 8) {
    const __mmask8 there = static_cast<__mmask8>(LanesOf(count - at));
    const __m512d magnitude = _mm512_cvtps_pd(_mm256_maskz_loadu_ps(there, magnitudes + at));
    __m128i c = _mm_maskz_mov_epi8(_mm512_cmp_pd_mask(magnitude, first, _CMP_GT_OQ), one);
    c = _mm_mask_add_epi8(c, _mm512_cmp_pd_mask(magnitude, second, _CMP_GT_OQ), c, one);
    c = _mm_mask_add_epi8(c, _mm512_cmp_pd_mask(magnitude, third, _CMP_GT_OQ), c, one);
    _mm_mask_storeu_epi8(classes + at, there, c);
  }
}

constexpr BlockScan kScan{Difference, Mark, Gather, Count, Keep, Signs, {ClassSum, ClassSplit, ClassAssign}};

}  // namespace

const BlockScan* Avx512BlockScan() { return &kScan; }

}  // namespace isthmus

#else

namespace isthmus {

const BlockScan* Avx512BlockScan() { return nullptr; }

}  // namespace isthmus

#endif
