// Placing in AVX2.
#include "compression/entry_placer.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define ISTHMUS_PATH __attribute__((target("avx2,bmi,popcnt")))
#include "compression/placer_steps.h"

namespace isthmus {
namespace {

constexpr int kLanes = 16;

ISTHMUS_PATH inline __m256i Load(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

ISTHMUS_PATH inline void Store(__m256i v, void* to) { _mm256_storeu_si256(static_cast<__m256i*>(to), v); }

// In each lane the sum of all up to it.
ISTHMUS_PATH inline __m256i PrefixSums(__m256i v) {
  v = _mm256_add_epi16(v, _mm256_bslli_epi128(v, 2));
  v = _mm256_add_epi16(v, _mm256_bslli_epi128(v, 4));
  v = _mm256_add_epi16(v, _mm256_bslli_epi128(v, 8));
  const __m256i totals = _mm256_shuffle_epi8(v, _mm256_set1_epi16(0x0F0E));
  return _mm256_add_epi16(v, _mm256_permute2x128_si256(totals, totals, 0x08));
}

// −1 in the lanes whose bit is set.
ISTHMUS_PATH inline __m256i LanesOf(uint64_t bits) {
  const __m256i one = _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384,
                                        static_cast<int16_t>(0x8000));
  return _mm256_cmpeq_epi16(_mm256_and_si256(_mm256_set1_epi16(static_cast<int16_t>(bits)), one), one);
}

struct Path {
  using Running = __m256i;  // the same in every lane

  ISTHMUS_PATH static Running Begin() { return _mm256_setzero_si256(); }

  ISTHMUS_PATH static uint64_t Sums(const uint8_t* gaps, Running* running, Entry* out) {
    uint64_t ends = 0;
    for (size_t i = 0; i < kBytes; i += kLanes) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(gaps + i));
      const __m256i gap = _mm256_cvtepu8_epi16(bytes);
      const __m256i is_escape = _mm256_cmpeq_epi16(gap, _mm256_set1_epi16(255));
      // A gap and one for its entry.
      const __m256i ahead = _mm256_add_epi16(_mm256_add_epi16(gap, _mm256_set1_epi16(1)), is_escape);
      const __m256i sums = _mm256_add_epi16(PrefixSums(ahead), *running);
      const __m256i last = _mm256_shuffle_epi8(sums, _mm256_set1_epi16(0x0F0E));
      *running = _mm256_permute2x128_si256(last, last, 0x11);
      const uint32_t escapes = static_cast<uint32_t>(
          _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(static_cast<char>(0xFF)))));
      ends |= uint64_t{escapes ^ 0xFFFF} << i;
      Store(sums, out);
      out += escapes == 0 ? kLanes : Leave(~escapes, out);
    }
    return ends;
  }

  // Keeps those of the next kLanes sums whose bit is set; how many.
  static int Leave(uint32_t bits, Entry* sums) {
    int left = 0;
    for (int i = 0; i < kLanes; ++i) {
      sums[left] = sums[i];
      left += static_cast<int>(bits >> i & 1);
    }
    return left;
  }

  ISTHMUS_PATH static bool Finish(const uint8_t* values, size_t bit, int value_bits, int count, uint16_t base,
                                  Entry* entries) {
    const uint16_t begin = static_cast<uint16_t>(base + 1);
    __m256i all = _mm256_setzero_si256();
    int i = 0;
    for (; count - i >= kLanes; i += kLanes) {
      const __m256i position =
          _mm256_sub_epi16(Load(entries + i), _mm256_set1_epi16(static_cast<int16_t>(begin)));
      all = _mm256_or_si256(all, position);
      Store(position, entries + i);
    }
    int rest = 0;
    for (; i < count; ++i) {
      entries[i] = static_cast<Entry>(entries[i] - begin);
      rest |= entries[i];
    }
    if (!_mm256_testz_si256(all, _mm256_set1_epi16(static_cast<int16_t>(kPastEnd))) || (rest & kPastEnd) != 0)
      return false;
    i = 0;
    for (; value_bits == 1 && count - i >= kLanes; i += kLanes) {
      const __m256i position = Load(entries + i);
      const __m256i signs = LanesOf(BitsFrom(values, bit + static_cast<size_t>(i)));
      Store(_mm256_sub_epi16(_mm256_add_epi16(position, position), signs), entries + i);
    }
    AddCodes(values, bit + static_cast<size_t>(i * value_bits), value_bits, count - i, entries + i);
    return true;
  }
};

ISTHMUS_PATH PlacedBlocks Place(const EntryStreams& streams, int kept, int blocks, Entry* entries) {
  return PlaceFull<Path>(streams, kept, blocks, entries);
}

}  // namespace

PlaceFullFn PlaceFullAvx2() { return Place; }

}  // namespace isthmus

#else

namespace isthmus {

PlaceFullFn PlaceFullAvx2() { return nullptr; }

}  // namespace isthmus

#endif
