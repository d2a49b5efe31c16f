// The passes in AVX2.
#include "compression/block_scan.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#define ISTHMUS_AVX2 __attribute__((target("avx2,bmi,popcnt")))

namespace isthmus {
namespace {

constexpr int kLanes = 8;
constexpr uint32_t kMagnitudeBits = 0x7FFFFFFFu;

// Lane i is −1 where magnitude i reaches the threshold. Both are below 2^31, so signed comparing is right;
// `below` is the threshold less one.
ISTHMUS_AVX2 inline __m256i Reaches(__m256i bits, __m256i below) {
  return _mm256_cmpgt_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(kMagnitudeBits)), below);
}

ISTHMUS_AVX2 inline uint64_t BitsOf(__m256i lanes) {
  return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(lanes)));
}

ISTHMUS_AVX2 inline __m256i Below(uint32_t threshold) {
  return _mm256_set1_epi32(static_cast<int>(threshold) - 1);
}

// Bits of the values before the end, of a word that begins `left` values before it.
uint64_t BitsBefore(int left) {
  return left >= 64 ? ~uint64_t{0} : (uint64_t{1} << (left > 0 ? left : 0)) - 1;
}

ISTHMUS_AVX2 int Mark(const float* differences, int values, uint32_t threshold, uint64_t* marks) {
  const __m256i below = Below(threshold);
  int marked = 0;
  for (int word = 0; word < kMarkWords; ++word) {
    uint64_t mark = 0;
    for (int v = 0; v < 64; v += kLanes) {
      const auto* at = reinterpret_cast<const __m256i*>(differences + 64 * word + v);
      mark |= BitsOf(Reaches(_mm256_load_si256(at), below)) << v;
    }
    marks[word] = mark & BitsBefore(values - 64 * word);
    marked += __builtin_popcountll(marks[word]);
  }
  return marked;
}

ISTHMUS_AVX2 uint32_t LargestOf(__m256i largest) {
  alignas(32) uint32_t lanes[kLanes];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), largest);
  return *std::max_element(lanes, lanes + kLanes);
}

// Sends a block out in whole lines; what lies before the first and behind the last goes the plain way.
class Sender {
 public:
  explicit Sender(const Outgoing& outgoing) {
    const auto address = reinterpret_cast<uintptr_t>(outgoing.to);
    const int before = std::min(static_cast<int>(-address % 64 / sizeof(float)), outgoing.values);
    from_ = outgoing.from + before;
    to_ = outgoing.to + before;
    end_ = (outgoing.values - before) / 16 * 16;
    std::copy(outgoing.from, from_, outgoing.to);
    std::copy(from_ + end_, outgoing.from + outgoing.values, to_ + end_);
  }
  // The vector that begins `at` values behind the first line; none behind the last one.
  ISTHMUS_AVX2 void Send(int at) const {
    if (at < end_) _mm256_stream_ps(to_ + at, _mm256_loadu_ps(from_ + at));
  }

 private:
  const float* from_;
  float* to_;
  int end_;
};

// What values are made of.
struct Differences {
  const float* anchor;
  const float* parameters;

  ISTHMUS_AVX2 __m256 Load(int at) const {
    return _mm256_sub_ps(_mm256_loadu_ps(anchor + at), _mm256_loadu_ps(parameters + at));
  }
  float At(int at) const { return anchor[at] - parameters[at]; }
  // The next block is on its way while this one's candidates are sorted out.
  ISTHMUS_AVX2 void FetchAhead(int at) const {
    _mm_prefetch(reinterpret_cast<const char*>(anchor + at + kBlockValues), _MM_HINT_T1);
    _mm_prefetch(reinterpret_cast<const char*>(parameters + at + kBlockValues), _MM_HINT_T1);
  }
  void Meanwhile(int) const {}
};

struct Sums {
  Differences differences;
  const float* residual;
  float beta;
  const Sender& sender;

  ISTHMUS_AVX2 __m256 Load(int at) const {
    const __m256 kept = _mm256_mul_ps(_mm256_set1_ps(beta), _mm256_loadu_ps(residual + at));
    return _mm256_add_ps(kept, differences.Load(at));
  }
  float At(int at) const {
    const float kept = beta * residual[at];
    return kept + differences.At(at);
  }
  ISTHMUS_AVX2 void FetchAhead(int at) const {
    differences.FetchAhead(at);
    _mm_prefetch(reinterpret_cast<const char*>(residual + at + kBlockValues), _MM_HINT_T1);
  }
  ISTHMUS_AVX2 void Meanwhile(int at) const { sender.Send(at); }
};

template <typename Input>
ISTHMUS_AVX2 inline ScanResult Scan(const Input& input, int values, uint32_t threshold, float* differences,
                                    uint64_t* marks) {
  const __m256i below = Below(threshold), magnitude_bits = _mm256_set1_epi32(kMagnitudeBits);
  __m256i largest = _mm256_setzero_si256();
  ScanResult result;
  const int whole = values / 64;
  for (int word = 0; word < whole; ++word) {
    uint64_t mark = 0;
    for (int v = 0; v < 64; v += kLanes) {
      const int at = 64 * word + v;
      if (v % 16 == 0) input.FetchAhead(at);  // once a line
      input.Meanwhile(at);
      const __m256 d = input.Load(at);
      _mm256_store_ps(differences + at, d);
      const __m256i bits = _mm256_castps_si256(d);
      largest = _mm256_max_epi32(largest, _mm256_and_si256(bits, magnitude_bits));
      mark |= BitsOf(Reaches(bits, below)) << v;
    }
    marks[word] = mark;
    result.marked += __builtin_popcountll(mark);
  }
  result.largest = LargestOf(largest);
  for (int word = whole; word < kMarkWords; ++word) {
    for (int v = 0; v < 64; v += kLanes) input.Meanwhile(64 * word + v);
    marks[word] = 0;
    for (int at = 64 * word; at < std::min(values, 64 * word + 64); ++at) {
      const float d = input.At(at);
      differences[at] = d;
      uint32_t bits;
      std::memcpy(&bits, &d, sizeof bits);
      bits &= kMagnitudeBits;
      result.largest = std::max(result.largest, bits);
      const uint64_t is_marked = bits >= threshold;
      marks[word] |= is_marked << (at % 64);
    }
    result.marked += __builtin_popcountll(marks[word]);
  }
  return result;
}

ISTHMUS_AVX2 ScanResult Difference(const float* anchor, const float* parameters, int values,
                                   uint32_t threshold, float* differences, uint64_t* marks) {
  return Scan(Differences{anchor, parameters}, values, threshold, differences, marks);
}

ISTHMUS_AVX2 ScanResult Sum(const float* anchor, const float* parameters, const float* residual, float beta,
                            int values, uint32_t threshold, const Outgoing& outgoing, float* differences,
                            uint64_t* marks) {
  const Sender sender(outgoing);
  return Scan(Sums{{anchor, parameters}, residual, beta, sender}, values, threshold, differences, marks);
}

ISTHMUS_AVX2 void Send(const Outgoing& outgoing) {
  const Sender sender(outgoing);
  for (int at = 0; at < outgoing.values; at += kLanes) sender.Send(at);
  _mm_sfence();
}

ISTHMUS_AVX2 void Gather(const float* differences, const uint64_t* marks, int, Candidates* out) {
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
  out->count = count;
  // Counting reads whole vectors.
  std::memset(&out->bits[count], 0, sizeof(uint32_t) * kLanes);
}

ISTHMUS_AVX2 int Count(const Candidates& candidates, uint32_t threshold) {
  const __m256i below = Below(threshold);
  __m256i counts = _mm256_setzero_si256();
  for (int at = 0; at < candidates.count; at += kLanes) {
    const auto* bits = reinterpret_cast<const __m256i*>(candidates.bits + at);
    counts = _mm256_sub_epi32(counts, Reaches(_mm256_load_si256(bits), below));
  }
  const __m128i halves = _mm_add_epi32(_mm256_castsi256_si128(counts), _mm256_extracti128_si256(counts, 1));
  const __m128i quarters = _mm_add_epi32(halves, _mm_shuffle_epi32(halves, 0x4E));
  return _mm_cvtsi128_si32(_mm_add_epi32(quarters, _mm_shuffle_epi32(quarters, 0xB1)));
}

ISTHMUS_AVX2 void Keep(const Candidates& candidates, uint32_t threshold, uint16_t* positions,
                       float* differences, float* magnitudes) {
  int kept = 0;
  for (int i = 0; i < candidates.count; ++i) {
    const uint32_t bits = candidates.bits[i], magnitude = bits & kMagnitudeBits;
    positions[kept] = static_cast<uint16_t>(candidates.positions[i]);
    std::memcpy(&differences[kept], &bits, sizeof bits);
    std::memcpy(&magnitudes[kept], &magnitude, sizeof magnitude);
    kept += magnitude >= threshold;
  }
}

ISTHMUS_AVX2 void Signs(const float* differences, int count, uint64_t* out) {
  for (int word = 0; 64 * word < count; ++word) {
    uint64_t signs = 0;
    int at = 64 * word;
    const int end = std::min(count, at + 64);
    for (; at + kLanes <= end; at += kLanes) {
      const __m256 d = _mm256_loadu_ps(differences + at);
      signs |= BitsOf(_mm256_castps_si256(_mm256_cmp_ps(d, _mm256_setzero_ps(), _CMP_LT_OQ))) << (at % 64);
    }
    for (; at < end; ++at) {
      const uint64_t is_negative = differences[at] < 0;
      signs |= is_negative << (at % 64);
    }
    out[word] = signs;
  }
}

ISTHMUS_AVX2 int ClassSum(const float* magnitudes, const uint8_t* classes, int count, uint8_t which,
                          double* lanes) {
  __m256d low = _mm256_loadu_pd(lanes), high = _mm256_loadu_pd(lanes + 4);
  int in_class = 0, at = 0;
  for (; at + kLanes <= count; at += kLanes) {
    const __m128i theirs = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(classes + at));
    const __m256i in = _mm256_cvtepi8_epi32(_mm_cmpeq_epi8(theirs, _mm_set1_epi8(static_cast<char>(which))));
    const __m256 floats = _mm256_and_ps(_mm256_loadu_ps(magnitudes + at), _mm256_castsi256_ps(in));
    low = _mm256_add_pd(low, _mm256_cvtps_pd(_mm256_castps256_ps128(floats)));
    high = _mm256_add_pd(high, _mm256_cvtps_pd(_mm256_extractf128_ps(floats, 1)));
    in_class += __builtin_popcountll(BitsOf(in));
  }
  _mm256_storeu_pd(lanes, low);
  _mm256_storeu_pd(lanes + 4, high);
  for (; at < count; ++at) {
    const bool in = classes[at] == which;
    lanes[at % 8] += in ? static_cast<double>(magnitudes[at]) : 0.0;
    in_class += in;
  }
  return in_class;
}

ISTHMUS_AVX2 void ClassSplit(const float* magnitudes, int count, const double* levels, uint8_t* classes) {
  for (int i = 0; i < count; ++i) {
    const uint8_t c = classes[i];
    classes[i] = static_cast<uint8_t>(2 * c + (static_cast<double>(magnitudes[i]) > levels[c]));
  }
}

// −1 in each of four 32-bit lanes whose magnitude is above the bound.
ISTHMUS_AVX2 inline __m128i Above(__m256d magnitudes, double bound) {
  const __m256i above = _mm256_castpd_si256(_mm256_cmp_pd(magnitudes, _mm256_set1_pd(bound), _CMP_GT_OQ));
  return _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(_mm256_castsi256_si128(above)),
                                         _mm_castsi128_ps(_mm256_extracti128_si256(above, 1)), 0x88));
}

ISTHMUS_AVX2 void ClassAssign(const float* magnitudes, int count, const double* bounds, uint8_t* classes) {
  int at = 0;
  for (; at + 4 <= count; at += 4) {
    const __m256d four = _mm256_cvtps_pd(_mm_loadu_ps(magnitudes + at));
    __m128i minus = _mm_add_epi32(Above(four, bounds[0]), Above(four, bounds[1]));
    minus = _mm_add_epi32(minus, Above(four, bounds[2]));
    const __m128i words = _mm_packs_epi32(_mm_abs_epi32(minus), _mm_setzero_si128());
    const int bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
    std::memcpy(classes + at, &bytes, sizeof bytes);
  }
  for (; at < count; ++at) {
    const double m = magnitudes[at];
    classes[at] = static_cast<uint8_t>((m > bounds[0]) + (m > bounds[1]) + (m > bounds[2]));
  }
}

constexpr BlockScan kScan{
    Difference, Sum, Send, Mark, Gather, Count, Keep, Signs, {ClassSum, ClassSplit, ClassAssign}};

}  // namespace

const BlockScan* Avx2BlockScan() { return &kScan; }

}  // namespace isthmus

#else

namespace isthmus {

const BlockScan* Avx2BlockScan() { return nullptr; }

}  // namespace isthmus

#endif
