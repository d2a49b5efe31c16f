// The passes in AVX-512.
#include "compression/entry_scan.h"

#if defined(__x86_64__) && defined(__GNUC__)

// GCC 12's header leaves lanes undefined that its own code then ignores, and warns of itself.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <algorithm>

#include "compression/entry_steps.h"

#define ISTHMUS_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,bmi,bmi2,popcnt")))

namespace isthmus {
namespace {

using entry_steps::BitsFrom;
using entry_steps::kBytes;
using entry_steps::Steps;

// Sum of the bytes that `which` names.
ISTHMUS_AVX512 inline __m512i SumOf(uint64_t which, __m512i bytes) {
  return _mm512_sad_epu8(_mm512_maskz_mov_epi8(which, bytes), _mm512_setzero_si512());
}

ISTHMUS_AVX512 int MeasureFull(const uint8_t* gaps, size_t left, int kept, int blocks, GapExtent* extents) {
  const __m512i escape = _mm512_set1_epi8(static_cast<char>(0xFF));
  int done = 0, count = 0;  // entries of the present block so far
  size_t begin = 0;         // where it begins
  __m512i sums = _mm512_setzero_si512();
  for (size_t at = 0; left - at >= static_cast<size_t>(kBytes); at += kBytes) {
    const __m512i bytes = _mm512_loadu_si512(gaps + at);
    uint64_t rest = ~uint64_t{0};  // bytes not yet of a measured block
    const uint64_t ends = ~_mm512_cmpeq_epi8_mask(bytes, escape);
    int there = static_cast<int>(_mm_popcnt_u64(ends));
    for (; count + there >= kept; there -= kept - count, count = 0) {
      // The byte that ends the last of the block's gaps.
      const uint64_t last = _pdep_u64(uint64_t{1} << (kept - count - 1), ends & rest);
      const uint64_t upto = _blsmsk_u64(last);
      sums = _mm512_add_epi64(sums, SumOf(upto & rest, bytes));
      // Positions ascend, so the last one speaks for all.
      if (_mm512_reduce_add_epi64(sums) + kept > kBlockValues) return done;
      const size_t end = at + static_cast<size_t>(_mm_popcnt_u64(upto));
      extents[done].bytes = static_cast<uint16_t>(end - begin);
      extents[done].entries = static_cast<uint16_t>(kept);
      if (++done == blocks) return done;
      begin = end;
      rest = ~upto;
      sums = _mm512_setzero_si512();
    }
    count += there;
    sums = _mm512_add_epi64(sums, SumOf(rest, bytes));
  }
  return done;
}

// In each lane the sum of all up to it.
ISTHMUS_AVX512 inline __m512i PrefixSums(__m512i v) {
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

ISTHMUS_AVX512 inline __m256i PrefixSums16(__m256i v) {
  v = _mm256_add_epi16(v, _mm256_bslli_epi128(v, 2));
  v = _mm256_add_epi16(v, _mm256_bslli_epi128(v, 4));
  v = _mm256_add_epi16(v, _mm256_bslli_epi128(v, 8));
  const __m256i totals = _mm256_shuffle_epi8(v, _mm256_set1_epi16(0x0F0E));
  return _mm256_add_epi16(v, _mm256_permute2x128_si256(totals, totals, 0x08));
}

// Writes those lanes' numbers that end a gap; how many.
ISTHMUS_AVX512 inline int Put(__m256i positions, __mmask16 ends, uint32_t* out) {
  // Compressed in the register: straight to memory is slow on some processors.
  _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(ends, _mm512_cvtepu16_epi32(positions)));
  return __builtin_popcount(ends);
}

// Positions of a block; garbage after the last one.
ISTHMUS_AVX512 void UnpackPositions(const uint8_t* gaps, int gap_bytes, uint32_t* out) {
  int count = 0, at = 0;
  __m512i carried = _mm512_set1_epi16(-1);
  for (; gap_bytes - at > 16; at += 32) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(gaps + at));
    const __mmask32 ends = ~_mm256_cmpeq_epi8_mask(bytes, _mm256_set1_epi8(static_cast<char>(0xFF)));
    const __m512i gap = _mm512_sub_epi16(_mm512_cvtepu8_epi16(bytes), _mm512_movm_epi16(ends));
    const __m512i positions = _mm512_add_epi16(PrefixSums(gap), carried);
    carried = _mm512_permutexvar_epi16(_mm512_set1_epi16(31), positions);
    count += Put(_mm512_castsi512_si256(positions), static_cast<__mmask16>(ends), out + count);
    count += Put(_mm512_extracti64x4_epi64(positions, 1), static_cast<__mmask16>(ends >> 16), out + count);
  }
  if (at >= gap_bytes) return;
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(gaps + at));
  const __mmask16 ends =
      static_cast<__mmask16>(~_mm_cmpeq_epi8_mask(bytes, _mm_set1_epi8(static_cast<char>(0xFF))));
  const __m256i gap = _mm256_sub_epi16(_mm256_cvtepu8_epi16(bytes), _mm256_movm_epi16(ends));
  Put(_mm256_add_epi16(PrefixSums16(gap), _mm512_castsi512_si256(carried)), ends, out + count);
}

// The mantissas of the next 16 entries from `entry` on, whatever their value bits.
ISTHMUS_AVX512 inline __m512i Mantissas16(const PackedEntries& block, int entry) {
  const int bits = block.value_bits;
  // Sixteen codes are at most 48 bits, eight at most 24.
  const uint64_t codes = BitsFrom(block.values, block.first_bit + static_cast<size_t>(bits * entry));
  const __m256i low = _mm256_set1_epi32(static_cast<int>(codes));
  const __m256i high = _mm256_set1_epi32(static_cast<int>(codes >> (8 * bits)));
  const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7);
  const __m512i shifts = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(bits));
  const __m512i code = _mm512_and_si512(_mm512_srlv_epi32(both, shifts), _mm512_set1_epi32((1 << bits) - 1));
  const __m256i of_code = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block.mantissas));
  return _mm512_permutexvar_epi32(code, _mm512_castsi256_si512(of_code));
}

ISTHMUS_AVX512 void Unpack(const PackedEntries& block, UnpackedEntries* out) {
  UnpackPositions(block.gaps, block.gap_bytes, out->positions);
  for (int i = 0; i < block.entries; i += 16) _mm512_store_si512(out->mantissas + i, Mantissas16(block, i));
}

ISTHMUS_AVX512 inline void SetAhead(__m512i bytes, uint64_t ends, Steps* steps) {
  const __m512i low = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(bytes));
  const __m512i high = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(bytes, 1));
  _mm512_store_si512(steps->ahead, _mm512_sub_epi16(low, _mm512_movm_epi16(static_cast<__mmask32>(ends))));
  _mm512_store_si512(steps->ahead + 32,
                     _mm512_sub_epi16(high, _mm512_movm_epi16(static_cast<__mmask32>(ends >> 32))));
}

ISTHMUS_AVX512 inline void SetSigned(const PackedEntries& block, int entry, uint64_t ends, Steps* steps) {
  const size_t bit = block.first_bit + static_cast<size_t>(entry);
  const uint64_t signs = _pdep_u64(entry_steps::WordFrom(block.values, bit), ends);
  const __m512i plus = _mm512_set1_epi32(block.mantissas[0]), minus = _mm512_set1_epi32(block.mantissas[1]);
  for (int i = 0; i < kBytes; i += 16) {
    const __m512i either = _mm512_maskz_mov_epi32(static_cast<__mmask16>(ends >> i), plus);
    _mm512_store_si512(steps->mantissas + i,
                       _mm512_mask_mov_epi32(either, static_cast<__mmask16>(signs >> i), minus));
  }
}

ISTHMUS_AVX512 inline void SetCoded(const PackedEntries& block, int entry, uint64_t ends, Steps* steps) {
  for (int i = 0; i < kBytes; i += 16) {
    const __mmask16 there = static_cast<__mmask16>(ends >> i);
    _mm512_store_si512(steps->mantissas + i, _mm512_maskz_expand_epi32(there, Mantissas16(block, entry)));
    entry += __builtin_popcount(there);
  }
}

ISTHMUS_AVX512 void Prepare(const PackedEntries& block, int at, int entry, Steps* steps) {
  steps->block = &block;
  steps->is_first = at == 0;
  steps->bytes = std::min(block.gap_bytes - at, kBytes);
  const uint64_t there = ~uint64_t{0} >> (kBytes - steps->bytes);
  const __m512i bytes = _mm512_maskz_loadu_epi8(there, block.gaps + at);
  uint64_t ends = _mm512_mask_cmpneq_epi8_mask(there, bytes, _mm512_set1_epi8(static_cast<char>(0xFF)));
  SetAhead(bytes, ends, steps);
  steps->at = at + steps->bytes;
  steps->entry = entry + static_cast<int>(_mm_popcnt_u64(ends));
  // The gap to a block's end is no entry.
  if (steps->entry > block.entries) ends &= there >> 1;
  if (block.value_bits == 1) {
    SetSigned(block, entry, ends, steps);
  } else {
    SetCoded(block, entry, ends, steps);
  }
}

void Add(const PackedEntries* blocks, int count, const SoonWanted& soon, int32_t* sums) {
  entry_steps::AddBlocks(blocks, count, soon, sums, Prepare);
}

constexpr EntryScan kScan{MeasureFull, Unpack, Add};

}  // namespace

const EntryScan* Avx512EntryScan() { return &kScan; }

}  // namespace isthmus

#else

namespace isthmus {

const EntryScan* Avx512EntryScan() { return nullptr; }

}  // namespace isthmus

#endif
