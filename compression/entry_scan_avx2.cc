// The passes in AVX2.
#include "compression/entry_scan.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <algorithm>

#include "compression/entry_steps.h"

#define ISTHMUS_AVX2 __attribute__((target("avx2,bmi,popcnt")))

namespace isthmus {
namespace {

using entry_steps::kBytes;
using entry_steps::Steps;

ISTHMUS_AVX2 inline __m256i Load(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

// Bit i is whether byte i is 255.
ISTHMUS_AVX2 inline uint64_t Escapes(const uint8_t* bytes) {
  const __m256i escape = _mm256_set1_epi8(static_cast<char>(0xFF));
  const int low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(Load(bytes), escape));
  const int high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(Load(bytes + 32), escape));
  return static_cast<uint32_t>(low) | uint64_t{static_cast<uint32_t>(high)} << 32;
}

// Sum of `count` bytes; 32 more can be read.
ISTHMUS_AVX2 inline int64_t SumOf(const uint8_t* bytes, size_t count) {
  static constexpr int8_t kThere[64] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                        -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
  const __m256i zero = _mm256_setzero_si256();
  __m256i sums = zero;
  size_t at = 0;
  for (; at + 32 <= count; at += 32) sums = _mm256_add_epi64(sums, _mm256_sad_epu8(Load(bytes + at), zero));
  const __m256i there = Load(kThere + 32 - (count - at));
  sums = _mm256_add_epi64(sums, _mm256_sad_epu8(_mm256_and_si256(Load(bytes + at), there), zero));
  const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  return _mm_cvtsi128_si64(two) + _mm_extract_epi64(two, 1);
}

ISTHMUS_AVX2 int MeasureFull(const uint8_t* gaps, size_t left, int kept, int blocks, GapExtent* extents) {
  int done = 0, count = 0;  // entries of the present block so far
  size_t begin = 0;         // where it begins
  for (size_t at = 0; left - at >= static_cast<size_t>(kBytes); at += kBytes) {
    uint64_t escapes = Escapes(gaps + at);
    int used = 0;  // bytes of measured blocks
    int there = kBytes - static_cast<int>(_mm_popcnt_u64(escapes));
    for (; count + there >= kept; there -= kept - count, count = 0) {
      // The block's last gap ends so many bytes on, and one more for each escape before.
      int end = used + kept - count;
      for (; escapes != 0 && static_cast<int>(_tzcnt_u64(escapes)) < end; escapes = _blsr_u64(escapes)) ++end;
      used = end;
      const size_t bytes = at + static_cast<size_t>(end) - begin;
      // Positions ascend, so the last one speaks for all. The slack of the stream is read too.
      if (SumOf(gaps + begin, bytes) + kept > kBlockValues) return done;
      extents[done].bytes = static_cast<uint16_t>(bytes);
      extents[done].entries = static_cast<uint16_t>(kept);
      if (++done == blocks) return done;
      begin += bytes;
    }
    count += there;
  }
  return done;
}

ISTHMUS_AVX2 inline void SetAhead(const uint8_t* bytes, Steps* steps) {
  for (int i = 0; i < kBytes; i += 16) {
    const __m256i gap = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + i)));
    const __m256i is_escape = _mm256_cmpeq_epi16(gap, _mm256_set1_epi16(255));
    const __m256i ahead = _mm256_add_epi16(_mm256_add_epi16(gap, _mm256_set1_epi16(1)), is_escape);
    _mm256_store_si256(reinterpret_cast<__m256i*>(steps->ahead + i), ahead);
  }
}

ISTHMUS_AVX2 inline void SetSigned(const PackedEntries& block, uint64_t escapes, uint64_t signs,
                                   Steps* steps) {
  for (uint64_t left = escapes; left != 0; left = _blsr_u64(left)) {
    // A bit more before each one that follows the escape.
    const uint64_t below = _blsi_u64(left) - 1;
    signs = (signs & below) | (signs & ~below) << 1;
  }
  const __m256 plus = _mm256_castsi256_ps(_mm256_set1_epi32(block.mantissas[0]));
  const __m256 minus = _mm256_castsi256_ps(_mm256_set1_epi32(block.mantissas[1]));
  const __m256i to_top = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
  for (int i = 0; i < kBytes; i += 8) {
    const __m256i sign = _mm256_sllv_epi32(_mm256_set1_epi32(static_cast<int>(signs >> i)), to_top);
    const __m256i escape = _mm256_sllv_epi32(_mm256_set1_epi32(static_cast<int>(escapes >> i)), to_top);
    const __m256 mantissas = _mm256_blendv_ps(plus, minus, _mm256_castsi256_ps(sign));
    _mm256_store_ps(reinterpret_cast<float*>(steps->mantissas + i),
                    _mm256_blendv_ps(mantissas, _mm256_setzero_ps(), _mm256_castsi256_ps(escape)));
  }
}

ISTHMUS_AVX2 void Prepare(const PackedEntries& block, int at, int entry, Steps* steps) {
  steps->block = &block;
  steps->is_first = at == 0;
  steps->bytes = std::min(block.gap_bytes - at, kBytes);
  // What the stream holds past the block's bytes is made ready too, and not taken.
  const uint8_t* bytes = block.gaps + at;
  const uint64_t there = ~uint64_t{0} >> (kBytes - steps->bytes);
  uint64_t escapes = Escapes(bytes);
  const int entries = static_cast<int>(_mm_popcnt_u64(~escapes & there));
  if (entry + entries > block.entries) escapes |= uint64_t{1} << (steps->bytes - 1);  // the gap to the end
  SetAhead(bytes, steps);
  SetSigned(block, escapes, entry_steps::WordFrom(block.values, block.first_bit + static_cast<size_t>(entry)),
            steps);
  steps->at = at + steps->bytes;
  steps->entry = entry + entries;
}

void Add(const PackedEntries* blocks, int count, const SoonWanted& soon, int32_t* sums) {
  if (std::all_of(blocks, blocks + count, [](const PackedEntries& b) { return b.value_bits == 1; })) {
    entry_steps::AddBlocks(blocks, count, soon, sums, Prepare);
  } else {
    PortableEntryScan().add(blocks, count, soon, sums);
  }
}

void Unpack(const PackedEntries& block, UnpackedEntries* out) {
  int i = 0;
  entry_steps::ForRest(block, 0, 0, 0, [&](uint64_t position, int32_t mantissa) {
    out->positions[i] = static_cast<uint32_t>(position);
    out->mantissas[i++] = mantissa;
  });
}

constexpr EntryScan kScan{MeasureFull, Unpack, Add};

}  // namespace

const EntryScan* Avx2EntryScan() { return &kScan; }

}  // namespace isthmus

#else

namespace isthmus {

const EntryScan* Avx2EntryScan() { return nullptr; }

}  // namespace isthmus

#endif
