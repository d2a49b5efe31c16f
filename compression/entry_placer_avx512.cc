// Placing in AVX-512.
#include "compression/entry_placer.h"

#if defined(__x86_64__) && defined(__GNUC__)

// GCC 12's header leaves lanes undefined that its own code then ignores, and warns of itself.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#define ISTHMUS_PATH __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi,bmi2,popcnt")))
#include "compression/placer_steps.h"

namespace isthmus {
namespace {

constexpr int kLanes = 32;

// In each lane the sum of all up to it.
ISTHMUS_PATH inline __m512i PrefixSums(__m512i v) {
  v = _mm512_add_epi16(v, _mm512_bslli_epi128(v, 2));
  v = _mm512_add_epi16(v, _mm512_bslli_epi128(v, 4));
  v = _mm512_add_epi16(v, _mm512_bslli_epi128(v, 8));
  // Each quarter's total, in all of its lanes; then those of the quarters before.
  const __m512i totals = _mm512_shuffle_epi8(v, _mm512_set1_epi16(0x0F0E));
  const __m512i zero = _mm512_setzero_si512();
  const __m512i before = _mm512_alignr_epi64(totals, zero, 6);
  const __m512i two_before = _mm512_alignr_epi64(_mm512_add_epi16(totals, before), zero, 4);
  return _mm512_add_epi16(v, _mm512_add_epi16(before, two_before));
}

struct Path {
  using Running = __m512i;  // the same in every lane

  ISTHMUS_PATH static Running Begin() { return _mm512_setzero_si512(); }

  ISTHMUS_PATH static uint64_t Sums(const uint8_t* gaps, Running* running, Entry* out) {
    const __m512i bytes = _mm512_loadu_si512(gaps);
    const uint64_t ends = ~_mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(static_cast<char>(0xFF)));
    const __mmask32 low = static_cast<__mmask32>(ends), high = static_cast<__mmask32>(ends >> kLanes);
    const __m512i last = _mm512_set1_epi16(kLanes - 1);
    // A gap and one for its entry.
    const __m512i first =
        _mm512_add_epi16(PrefixSums(_mm512_sub_epi16(_mm512_cvtepu8_epi16(_mm512_castsi512_si256(bytes)),
                                                     _mm512_movm_epi16(low))),
                         *running);
    const __m512i second = _mm512_add_epi16(
        PrefixSums(_mm512_sub_epi16(_mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(bytes, 1)),
                                    _mm512_movm_epi16(high))),
        _mm512_permutexvar_epi16(last, first));
    *running = _mm512_permutexvar_epi16(last, second);
    // Compressed in the register: straight to memory is slow on some processors.
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi16(low, first));
    _mm512_storeu_si512(out + __builtin_popcount(low), _mm512_maskz_compress_epi16(high, second));
    return ends;
  }

  ISTHMUS_PATH static bool Finish(const uint8_t* values, size_t bit, int value_bits, int count, uint16_t base,
                                  Entry* entries) {
    const __m512i begin = _mm512_set1_epi16(static_cast<int16_t>(base + 1));
    const __m128i shift = _mm_cvtsi32_si128(value_bits);
    __m512i all = _mm512_setzero_si512();
    for (int i = 0; i < count; i += kLanes) {
      const __mmask32 there = ~uint32_t{0} >> std::max(0, kLanes - (count - i));
      const __m512i position = _mm512_maskz_sub_epi16(there, _mm512_loadu_si512(entries + i), begin);
      all = _mm512_or_si512(all, position);
      const __m512i moved = _mm512_sll_epi16(position, shift);
      const __mmask32 signs =
          value_bits == 1 ? static_cast<__mmask32>(BitsFrom(values, bit + static_cast<size_t>(i))) : 0;
      _mm512_mask_storeu_epi16(entries + i, there, _mm512_sub_epi16(moved, _mm512_movm_epi16(signs)));
    }
    if (_mm512_test_epi16_mask(all, _mm512_set1_epi16(static_cast<int16_t>(kPastEnd))) != 0) return false;
    if (value_bits > 1) SetCodes(values, bit, value_bits, count, entries);
    return true;
  }

  // Codes of two or three bits, four at a time.
  ISTHMUS_PATH static void SetCodes(const uint8_t* values, size_t bit, int value_bits, int count,
                                    Entry* entries) {
    const uint64_t lanes = ((uint64_t{1} << value_bits) - 1) * 0x0001000100010001;
    for (; count >= 4; count -= 4, entries += 4, bit += static_cast<size_t>(4 * value_bits)) {
      uint64_t four;
      std::memcpy(&four, entries, sizeof four);
      four |= _pdep_u64(BitsFrom(values, bit), lanes);
      std::memcpy(entries, &four, sizeof four);
    }
    for (; count > 0; --count, ++entries, bit += static_cast<size_t>(value_bits))
      *entries |= static_cast<Entry>(BitsFrom(values, bit) & lanes & 0xFFFF);
  }
};

ISTHMUS_PATH PlacedBlocks Place(const EntryStreams& streams, int kept, int blocks, Entry* entries) {
  return PlaceFull<Path>(streams, kept, blocks, entries);
}

}  // namespace

// The first processors with AVX-512 have no instruction that compresses 16-bit lanes.
PlaceFullFn PlaceFullAvx512() { return __builtin_cpu_supports("avx512vbmi2") ? Place : nullptr; }

}  // namespace isthmus

#else

namespace isthmus {

PlaceFullFn PlaceFullAvx512() { return nullptr; }

}  // namespace isthmus

#endif
