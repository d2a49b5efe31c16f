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

// Sends a block out in whole lines; what lies before the first and behind the last goes the plain way.
class Sender {
 public:
  explicit Sender(const Outgoing& outgoing) {
    const auto address = reinterpret_cast<uintptr_t>(outgoing.to);
    const int before = std::min(static_cast<int>(-address % 64 / sizeof(float)), outgoing.values);
    from_ = outgoing.from + before;
    to_ = outgoing.to + before;
    end_ = (outgoing.values - before) / kLanes * kLanes;
    std::copy(outgoing.from, from_, outgoing.to);
    std::copy(from_ + end_, outgoing.from + outgoing.values, to_ + end_);
  }
  // The line that begins `at` values behind the first one; none behind the last.
  ISTHMUS_AVX512 void Send(int at) const {
    if (at < end_) _mm512_stream_ps(to_ + at, _mm512_loadu_ps(from_ + at));
  }

 private:
  const float* from_;
  float* to_;
  int end_;
};

// What a vector of values is made of. Whole: all lanes are there.
struct Differences {
  const float* anchor;
  const float* parameters;

  ISTHMUS_AVX512 __m512 Load(int at, __mmask16 lanes) const {
    return _mm512_sub_ps(_mm512_maskz_loadu_ps(lanes, anchor + at),
                         _mm512_maskz_loadu_ps(lanes, parameters + at));
  }
  // The next block is on its way while this one's candidates are sorted out.
  ISTHMUS_AVX512 void FetchAhead(int at) const {
    _mm_prefetch(reinterpret_cast<const char*>(anchor + at + kBlockValues), _MM_HINT_T1);
    _mm_prefetch(reinterpret_cast<const char*>(parameters + at + kBlockValues), _MM_HINT_T1);
  }
  void Meanwhile(int) const {}
};

struct Sums {
  Differences differences;
  const float* residual;
  __m512 beta;
  const Sender& sender;

  ISTHMUS_AVX512 __m512 Load(int at, __mmask16 lanes) const {
    const __m512 kept = _mm512_mul_ps(beta, _mm512_maskz_loadu_ps(lanes, residual + at));
    return _mm512_add_ps(kept, differences.Load(at, lanes));
  }
  ISTHMUS_AVX512 void FetchAhead(int at) const {
    differences.FetchAhead(at);
    _mm_prefetch(reinterpret_cast<const char*>(residual + at + kBlockValues), _MM_HINT_T1);
  }
  ISTHMUS_AVX512 void Meanwhile(int at) const { sender.Send(at); }
};

// One vector of values, `lanes` of them there; the marks.
template <typename Input>
ISTHMUS_AVX512 inline uint64_t ScanVector(const Input& input, int at, __mmask16 lanes, float* differences,
                                          Pass* pass) {
  const __m512 d = input.Load(at, lanes);
  _mm512_store_ps(differences + at, d);
  const __m512i magnitude = Magnitude(_mm512_castps_si512(d));
  pass->largest = _mm512_max_epi32(pass->largest, magnitude);
  return _mm512_mask_cmpge_epi32_mask(lanes, magnitude, pass->threshold);
}

template <typename Input>
ISTHMUS_AVX512 inline ScanResult Scan(const Input& input, int values, uint32_t threshold, float* differences,
                                      uint64_t* marks) {
  Pass pass{_mm512_set1_epi32(static_cast<int>(threshold)), _mm512_setzero_si512()};
  ScanResult result;
  for (int word = 0; word < kMarkWords; ++word) {
    uint64_t mark = 0;
    const int at = 64 * word;
    if (at + 64 <= values) {
      for (int v = 0; v < 64; v += kLanes) {
        input.FetchAhead(at + v);
        input.Meanwhile(at + v);
        mark |= ScanVector(input, at + v, 0xFFFF, differences, &pass) << v;
      }
    } else {
      for (int v = 0; v < 64; v += kLanes) {
        input.Meanwhile(at + v);
        if (at + v >= values) continue;
        mark |= ScanVector(input, at + v, LanesOf(values - at - v), differences, &pass) << v;
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

ISTHMUS_AVX512 ScanResult Difference(const float* anchor, const float* parameters, int values,
                                     uint32_t threshold, float* differences, uint64_t* marks) {
  return Scan(Differences{anchor, parameters}, values, threshold, differences, marks);
}

ISTHMUS_AVX512 ScanResult Sum(const float* anchor, const float* parameters, const float* residual, float beta,
                              int values, uint32_t threshold, const Outgoing& outgoing, float* differences,
                              uint64_t* marks) {
  const Sender sender(outgoing);
  return Scan(Sums{{anchor, parameters}, residual, _mm512_set1_ps(beta), sender}, values, threshold,
              differences, marks);
}

ISTHMUS_AVX512 void Send(const Outgoing& outgoing) {
  const Sender sender(outgoing);
  for (int at = 0; at < outgoing.values; at += kLanes) sender.Send(at);
  _mm_sfence();
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

constexpr BlockScan kScan{
    Difference, Sum, Send, Mark, Gather, Count, Keep, Signs, {ClassSum, ClassSplit, ClassAssign}};

}  // namespace

const BlockScan* Avx512BlockScan() { return &kScan; }

}  // namespace isthmus

#else

namespace isthmus {

const BlockScan* Avx512BlockScan() { return nullptr; }

}  // namespace isthmus

#endif
