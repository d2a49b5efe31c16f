// The passes in AVX2, over whole blocks.
#include "compression/group_scan.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <algorithm>

#include "compression/layout.h"

#define ISTHMUS_AVX2 __attribute__((target("avx2,bmi,popcnt")))

namespace isthmus {
namespace {

constexpr int kLanes = 8;

ISTHMUS_AVX2 inline __m256i LargerMagnitude(__m256i largest, __m256 d) {
  return _mm256_max_epi32(largest, _mm256_and_si256(_mm256_castps_si256(d), _mm256_set1_epi32(0x7FFFFFFF)));
}

ISTHMUS_AVX2 inline uint32_t LargestLane(__m256i v) {
  __m128i four = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_max_epi32(four, _mm_shuffle_epi32(four, 0xB1))));
}

ISTHMUS_AVX2 void Difference(const float* anchor, const float* parameters, int values, int group,
                             float* differences, uint32_t* largest) {
  for (int at = 0; at < values; at += group) {
    __m256i most = _mm256_setzero_si256();
    for (int i = at; i < at + group; i += kLanes) {
      if (i % 16 == 0) {  // once a line
        _mm_prefetch(reinterpret_cast<const char*>(anchor + i + kBlockValues), _MM_HINT_T1);
        _mm_prefetch(reinterpret_cast<const char*>(parameters + i + kBlockValues), _MM_HINT_T1);
      }
      const __m256 d = _mm256_sub_ps(_mm256_loadu_ps(anchor + i), _mm256_loadu_ps(parameters + i));
      _mm256_storeu_ps(differences + i, d);
      most = LargerMagnitude(most, d);
    }
    *largest++ = LargestLane(most);
  }
}

ISTHMUS_AVX2 void Largest(const float* in, int values, int group, uint32_t* largest) {
  for (int at = 0; at < values; at += group) {
    __m256i most = _mm256_setzero_si256();
    for (int i = at; i < at + group; i += kLanes) most = LargerMagnitude(most, _mm256_loadu_ps(in + i));
    *largest++ = LargestLane(most);
  }
}

// Sixteen integers, a byte each.
ISTHMUS_AVX2 inline __m128i Quantized(const float* in, __m256 scale) {
  const __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(in), scale));
  const __m256i b = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(in + kLanes), scale));
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xD8);
  return _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

// 2^−exponent; the exponent is within −126 … 126.
ISTHMUS_AVX2 inline __m256 Scale(int exponent) {
  return _mm256_castsi256_ps(_mm256_set1_epi32((127 - exponent) << 23));
}

ISTHMUS_AVX2 void Quantize8(const float* in, int values, int group, const int* exponents, uint8_t* out) {
  for (int at = 0; at < values; at += group) {
    const __m256 scale = Scale(*exponents++);
    for (int i = at; i < at + group; i += 2 * kLanes) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), Quantized(in + i, scale));
    }
  }
}

ISTHMUS_AVX2 void Quantize4(const float* in, int values, int group, const int* exponents, uint8_t* out) {
  for (int at = 0; at < values; at += group) {
    const __m256 scale = Scale(*exponents++);
    for (int i = at; i < at + group; i += 2 * kLanes) {
      const __m128i nibbles = _mm_and_si128(Quantized(in + i, scale), _mm_set1_epi8(15));
      const __m128i pairs = _mm_maddubs_epi16(nibbles, _mm_set1_epi16(0x1001));  // first + 16 · second
      _mm_storel_epi64(reinterpret_cast<__m128i*>(out + i / 2), _mm_packus_epi16(pairs, pairs));
    }
  }
}

ISTHMUS_AVX2 inline void Shifted(__m128i integers, __m128i shift, int32_t* out) {
  const __m256i first = _mm256_sll_epi32(_mm256_cvtepi8_epi32(integers), shift);
  const __m256i second = _mm256_sll_epi32(_mm256_cvtepi8_epi32(_mm_srli_si128(integers, kLanes)), shift);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), first);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + kLanes), second);
}

ISTHMUS_AVX2 bool Decode8(const uint8_t* in, int values, int group, const uint8_t* shifts, int32_t* out) {
  __m128i bad = _mm_setzero_si128();
  for (int at = 0; at < values; at += group) {
    const __m128i shift = _mm_cvtsi32_si128(*shifts++);
    for (int i = at; i < at + group; i += 2 * kLanes) {
      const __m128i m = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
      bad = _mm_or_si128(bad, _mm_cmpeq_epi8(m, _mm_set1_epi8(-128)));
      Shifted(m, shift, out + i);
    }
  }
  return _mm_movemask_epi8(bad) == 0;
}

ISTHMUS_AVX2 bool Decode4(const uint8_t* in, int values, int group, const uint8_t* shifts, int32_t* out) {
  __m128i bad = _mm_setzero_si128();
  const __m128i low = _mm_set1_epi8(15), eight = _mm_set1_epi8(8);
  for (int at = 0; at < values; at += group) {
    const __m128i shift = _mm_cvtsi32_si128(*shifts++);
    for (int i = at; i < at + group; i += 2 * kLanes) {
      const __m128i pairs = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(in + i / 2));
      const __m128i nibbles =
          _mm_unpacklo_epi8(_mm_and_si128(pairs, low), _mm_and_si128(_mm_srli_epi16(pairs, 4), low));
      bad = _mm_or_si128(bad, _mm_cmpeq_epi8(nibbles, eight));
      Shifted(_mm_sub_epi8(_mm_xor_si128(nibbles, eight), eight), shift, out + i);
    }
  }
  return _mm_movemask_epi8(bad) == 0;
}

// What the transform needs of a type.
struct Floats {
  using Vector = __m256;
  ISTHMUS_AVX2 static Vector Load(const float* p) { return _mm256_loadu_ps(p); }
  ISTHMUS_AVX2 static void Store(float* p, Vector v) { _mm256_storeu_ps(p, v); }
  ISTHMUS_AVX2 static Vector Add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  ISTHMUS_AVX2 static Vector Sub(Vector a, Vector b) { return _mm256_sub_ps(a, b); }
  // Distances 1, 2 and 4.
  ISTHMUS_AVX2 static Vector Short(Vector a) {
    Vector b = _mm256_permute_ps(a, 0xB1);
    a = _mm256_blend_ps(Add(a, b), Sub(b, a), 0xAA);
    b = _mm256_permute_ps(a, 0x4E);
    a = _mm256_blend_ps(Add(a, b), Sub(b, a), 0xCC);
    b = _mm256_permute2f128_ps(a, a, 1);
    return _mm256_blend_ps(Add(a, b), Sub(b, a), 0xF0);
  }
};

struct Integers {
  using Vector = __m256i;
  ISTHMUS_AVX2 static Vector Load(const int32_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  ISTHMUS_AVX2 static void Store(int32_t* p, Vector v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
  }
  ISTHMUS_AVX2 static Vector Add(Vector a, Vector b) { return _mm256_add_epi32(a, b); }
  ISTHMUS_AVX2 static Vector Sub(Vector a, Vector b) { return _mm256_sub_epi32(a, b); }
  ISTHMUS_AVX2 static Vector Short(Vector a) {
    Vector b = _mm256_shuffle_epi32(a, 0xB1);
    a = _mm256_blend_epi32(Add(a, b), Sub(b, a), 0xAA);
    b = _mm256_shuffle_epi32(a, 0x4E);
    a = _mm256_blend_epi32(Add(a, b), Sub(b, a), 0xCC);
    b = _mm256_permute2x128_si256(a, a, 1);
    return _mm256_blend_epi32(Add(a, b), Sub(b, a), 0xF0);
  }
};

// Distances 1 … 4 within vectors, then two at a time, and the last of a block alone.
template <typename Of, typename T>
ISTHMUS_AVX2 void Hadamard(T* inout, int values) {
  for (int i = 0; i < values; i += kLanes) Of::Store(inout + i, Of::Short(Of::Load(inout + i)));
  int h = kLanes;
  for (; 4 * h <= values; h *= 4) {
    for (int at = 0; at < values; at += 4 * h) {
      for (int i = at; i < at + h; i += kLanes) {
        const auto a = Of::Load(inout + i), b = Of::Load(inout + i + h);
        const auto c = Of::Load(inout + i + 2 * h), d = Of::Load(inout + i + 3 * h);
        const auto ab = Of::Add(a, b), cd = Of::Add(c, d), a_b = Of::Sub(a, b), c_d = Of::Sub(c, d);
        Of::Store(inout + i, Of::Add(ab, cd));
        Of::Store(inout + i + h, Of::Add(a_b, c_d));
        Of::Store(inout + i + 2 * h, Of::Sub(ab, cd));
        Of::Store(inout + i + 3 * h, Of::Sub(a_b, c_d));
      }
    }
  }
  for (int i = 0; h < values && i < h; i += kLanes) {
    const auto a = Of::Load(inout + i), b = Of::Load(inout + i + h);
    Of::Store(inout + i, Of::Add(a, b));
    Of::Store(inout + i + h, Of::Sub(a, b));
  }
}

constexpr GroupScan kScan{Difference, Largest, Quantize8,        Quantize4,
                          Decode8,    Decode4, Hadamard<Floats>, Hadamard<Integers>};

}  // namespace

const GroupScan* Avx2GroupScan() { return &kScan; }

}  // namespace isthmus

#else

namespace isthmus {

const GroupScan* Avx2GroupScan() { return nullptr; }

}  // namespace isthmus

#endif
