// The passes in AVX-512, over whole blocks. Single operations, no fused multiply-adds, as everywhere.
#include "compression/group_scan.h"

#if defined(__x86_64__) && defined(__GNUC__)

// GCC 12's header leaves lanes undefined that its own code then ignores, and warns of itself.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include "compression/layout.h"

#define ISTHMUS_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,bmi,popcnt")))

namespace isthmus {
namespace {

constexpr int kLanes = 16;

ISTHMUS_AVX512 inline __m512i LargerMagnitude(__m512i largest, __m512 d) {
  return _mm512_max_epi32(largest, _mm512_and_si512(_mm512_castps_si512(d), _mm512_set1_epi32(0x7FFFFFFF)));
}

ISTHMUS_AVX512 void Difference(const float* anchor, const float* parameters, int values, int group,
                               float* differences, uint32_t* largest) {
  for (int at = 0; at < values; at += group) {
    __m512i most = _mm512_setzero_si512();
    for (int i = at; i < at + group; i += kLanes) {
      _mm_prefetch(reinterpret_cast<const char*>(anchor + i + kBlockValues), _MM_HINT_T1);
      _mm_prefetch(reinterpret_cast<const char*>(parameters + i + kBlockValues), _MM_HINT_T1);
      const __m512 d = _mm512_sub_ps(_mm512_loadu_ps(anchor + i), _mm512_loadu_ps(parameters + i));
      _mm512_storeu_ps(differences + i, d);
      most = LargerMagnitude(most, d);
    }
    *largest++ = static_cast<uint32_t>(_mm512_reduce_max_epi32(most));
  }
}

ISTHMUS_AVX512 void Largest(const float* in, int values, int group, uint32_t* largest) {
  for (int at = 0; at < values; at += group) {
    __m512i most = _mm512_setzero_si512();
    for (int i = at; i < at + group; i += kLanes) most = LargerMagnitude(most, _mm512_loadu_ps(in + i));
    *largest++ = static_cast<uint32_t>(_mm512_reduce_max_epi32(most));
  }
}

// Sixteen integers, a byte each.
ISTHMUS_AVX512 inline __m128i Quantized(const float* in, __m512 scale) {
  return _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(in), scale)));
}

// 2^−exponent; the exponent is within −126 … 126.
ISTHMUS_AVX512 inline __m512 Scale(int exponent) {
  return _mm512_castsi512_ps(_mm512_set1_epi32((127 - exponent) << 23));
}

ISTHMUS_AVX512 void Quantize8(const float* in, int values, int group, const int* exponents, uint8_t* out) {
  for (int at = 0; at < values; at += group) {
    const __m512 scale = Scale(*exponents++);
    for (int i = at; i < at + group; i += kLanes) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), Quantized(in + i, scale));
    }
  }
}

ISTHMUS_AVX512 void Quantize4(const float* in, int values, int group, const int* exponents, uint8_t* out) {
  for (int at = 0; at < values; at += group) {
    const __m512 scale = Scale(*exponents++);
    for (int i = at; i < at + group; i += kLanes) {
      const __m128i nibbles = _mm_and_si128(Quantized(in + i, scale), _mm_set1_epi8(15));
      const __m128i pairs = _mm_maddubs_epi16(nibbles, _mm_set1_epi16(0x1001));  // first + 16 · second
      _mm_storel_epi64(reinterpret_cast<__m128i*>(out + i / 2), _mm_packus_epi16(pairs, pairs));
    }
  }
}

ISTHMUS_AVX512 inline void Shifted(__m128i integers, __m128i shift, int32_t* out) {
  _mm512_storeu_si512(out, _mm512_sll_epi32(_mm512_cvtepi8_epi32(integers), shift));
}

ISTHMUS_AVX512 bool Decode8(const uint8_t* in, int values, int group, const uint8_t* shifts, int32_t* out) {
  __mmask16 bad = 0;
  for (int at = 0; at < values; at += group) {
    const __m128i shift = _mm_cvtsi32_si128(*shifts++);
    for (int i = at; i < at + group; i += kLanes) {
      const __m128i m = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
      bad |= _mm_cmpeq_epi8_mask(m, _mm_set1_epi8(-128));
      Shifted(m, shift, out + i);
    }
  }
  return bad == 0;
}

ISTHMUS_AVX512 bool Decode4(const uint8_t* in, int values, int group, const uint8_t* shifts, int32_t* out) {
  __mmask16 bad = 0;
  const __m128i low = _mm_set1_epi8(15), eight = _mm_set1_epi8(8);
  for (int at = 0; at < values; at += group) {
    const __m128i shift = _mm_cvtsi32_si128(*shifts++);
    for (int i = at; i < at + group; i += kLanes) {
      const __m128i pairs = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(in + i / 2));
      const __m128i nibbles =
          _mm_unpacklo_epi8(_mm_and_si128(pairs, low), _mm_and_si128(_mm_srli_epi16(pairs, 4), low));
      bad |= _mm_cmpeq_epi8_mask(nibbles, eight);
      Shifted(_mm_sub_epi8(_mm_xor_si128(nibbles, eight), eight), shift, out + i);
    }
  }
  return bad == 0;
}

// What the transform needs of a type; `b` is `a` with its halves of a distance exchanged, `upper` the lanes
// of the second halves.
struct Floats {
  using Vector = __m512;
  ISTHMUS_AVX512 static Vector Load(const float* p) { return _mm512_loadu_ps(p); }
  ISTHMUS_AVX512 static void Store(float* p, Vector v) { _mm512_storeu_ps(p, v); }
  ISTHMUS_AVX512 static Vector Add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  ISTHMUS_AVX512 static Vector Sub(Vector a, Vector b) { return _mm512_sub_ps(a, b); }
  ISTHMUS_AVX512 static Vector Inside(Vector a, Vector b, __mmask16 upper) {
    return _mm512_mask_sub_ps(_mm512_add_ps(a, b), upper, b, a);
  }
  ISTHMUS_AVX512 static Vector Short(Vector a) {
    a = Inside(a, _mm512_permute_ps(a, 0xB1), 0xAAAA);
    a = Inside(a, _mm512_permute_ps(a, 0x4E), 0xCCCC);
    a = Inside(a, _mm512_shuffle_f32x4(a, a, 0xB1), 0xF0F0);
    return Inside(a, _mm512_shuffle_f32x4(a, a, 0x4E), 0xFF00);
  }
};

struct Integers {
  using Vector = __m512i;
  ISTHMUS_AVX512 static Vector Load(const int32_t* p) { return _mm512_loadu_si512(p); }
  ISTHMUS_AVX512 static void Store(int32_t* p, Vector v) { _mm512_storeu_si512(p, v); }
  ISTHMUS_AVX512 static Vector Add(Vector a, Vector b) { return _mm512_add_epi32(a, b); }
  ISTHMUS_AVX512 static Vector Sub(Vector a, Vector b) { return _mm512_sub_epi32(a, b); }
  ISTHMUS_AVX512 static Vector Inside(Vector a, Vector b, __mmask16 upper) {
    return _mm512_mask_sub_epi32(_mm512_add_epi32(a, b), upper, b, a);
  }
  ISTHMUS_AVX512 static Vector Short(Vector a) {
    a = Inside(a, _mm512_shuffle_epi32(a, _MM_PERM_CDAB), 0xAAAA);
    a = Inside(a, _mm512_shuffle_epi32(a, _MM_PERM_BADC), 0xCCCC);
    a = Inside(a, _mm512_shuffle_i32x4(a, a, 0xB1), 0xF0F0);
    return Inside(a, _mm512_shuffle_i32x4(a, a, 0x4E), 0xFF00);
  }
};

// Distances 1 … 8 within vectors, then two at a time.
template <typename Of, typename T>
ISTHMUS_AVX512 void Hadamard(T* inout, int values) {
  for (int i = 0; i < values; i += kLanes) Of::Store(inout + i, Of::Short(Of::Load(inout + i)));
  for (int h = kLanes; h < values; h *= 4) {
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
}

constexpr GroupScan kScan{Difference, Largest, Quantize8,        Quantize4,
                          Decode8,    Decode4, Hadamard<Floats>, Hadamard<Integers>};

}  // namespace

const GroupScan* Avx512GroupScan() { return &kScan; }

}  // namespace isthmus

#else

namespace isthmus {

const GroupScan* Avx512GroupScan() { return nullptr; }

}  // namespace isthmus

#endif
