// How the vector paths add a block's entries: some 64 gap bytes at a time are made ready by vector, then
// taken one by one without a branch. For those paths' files only; header-only.
#ifndef ISTHMUS_COMPRESSION_ENTRY_STEPS_H_
#define ISTHMUS_COMPRESSION_ENTRY_STEPS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "compression/entry_scan.h"

namespace isthmus {
namespace entry_steps {

inline constexpr int kBytes = 64;

// Up to 64 gap bytes of one block: how far each leads, and its mantissa, 0 where it ends no gap.
struct Steps {
  const PackedEntries* block;
  bool is_first;  // of its block
  int bytes;
  int at, entry;  // bytes and entries of the block up to the end of these
  alignas(64) uint16_t ahead[kBytes];
  alignas(64) int32_t mantissas[kBytes];
};

// At least 57 bits of the value stream from `bit` on.
inline uint64_t BitsFrom(const uint8_t* values, size_t bit) {
  uint64_t bits;
  std::memcpy(&bits, values + bit / 8, sizeof bits);
  return bits >> (bit % 8);
}

// 64 of them.
inline uint64_t WordFrom(const uint8_t* values, size_t bit) {
  // Shifted in two steps: by 64 is not defined.
  return BitsFrom(values, bit) | uint64_t{values[bit / 8 + 8]} << 1 << (63 - bit % 8);
}

// Calls use(position, mantissa) for the entries of a block from gap byte `at` and `entry` on, the first gap
// counting from `next`.
template <typename Use>
inline void ForRest(const PackedEntries& block, int at, int entry, uint64_t next, Use use) {
  const uint64_t mask = (1u << block.value_bits) - 1;
  size_t bit = block.first_bit + static_cast<size_t>(entry * block.value_bits);
  for (const uint8_t* gap = block.gaps + at; entry < block.entries; ++entry) {
    for (; *gap == 255; ++gap) next += 255;
    next += *gap++;
    use(next++, block.mantissas[BitsFrom(block.values, bit) & mask]);
    bit += static_cast<size_t>(block.value_bits);
  }
}

// Adds what was made ready, and the rest of the block when there is no more of it; `next` is where the
// block's next gap counts from, and what comes back.
inline uint64_t Take(const Steps& steps, uint64_t next, int32_t* sums) {
  if (steps.is_first) next = 0;
  if (steps.bytes == kBytes) {
#pragma GCC unroll 64
    for (int i = 0; i < kBytes; ++i) {
      next += steps.ahead[i];
      sums[next - 1] += steps.mantissas[i];
    }
  } else {
    for (int i = 0; i < steps.bytes; ++i) {
      next += steps.ahead[i];
      sums[next - 1] += steps.mantissas[i];
    }
  }
  return next;
}

// The bytes left of a block after so many vectors when they are too few for another one.
inline constexpr int kFew = 8;

inline bool HasRest(const Steps& steps) {
  const int left = steps.block->gap_bytes - steps.at;
  return left > 0 && left <= kFew;
}

// `prepare` fills its last argument with a block's bytes from `at` and `entry` on. Always one vector ahead,
// so that the taking of one hides how long the next needs to get ready.
template <typename Prepare>
inline void AddBlocks(const PackedEntries* blocks, int count, const SoonWanted& soon, int32_t* sums,
                      Prepare prepare) {
  constexpr size_t kLine = 64;
  Steps steps[2];
  steps[0].block = nullptr;
  int now = 0;
  uint64_t next = 0;
  const auto take = [&](const Steps& ready) {
    if (ready.block == nullptr) return;
    next = Take(ready, next, sums);
    if (!HasRest(ready)) return;
    ForRest(*ready.block, ready.at, ready.entry, next,
            [sums](uint64_t position, int32_t mantissa) { sums[position] += mantissa; });
  };
  const size_t lines = (soon.bytes / kLine + static_cast<size_t>(count) - 1) / static_cast<size_t>(count);
  for (int b = 0; b < count; ++b) {
    const PackedEntries& block = blocks[b];
    __builtin_prefetch(block.gaps + block.gap_bytes + 2 * kLine);
    __builtin_prefetch(block.values + block.first_bit / 8 + 2 * kLine);
    for (size_t line = b * lines; soon.begin != nullptr && line < (b + 1) * lines; ++line)
      __builtin_prefetch(soon.begin + kLine * line, 0, 2);
    for (int at = 0, entry = 0; at < block.gap_bytes && (at == 0 || block.gap_bytes - at > kFew);) {
      prepare(block, at, entry, &steps[now ^ 1]);
      take(steps[now]);
      now ^= 1;
      at = steps[now].at;
      entry = steps[now].entry;
    }
  }
  take(steps[now]);
}

}  // namespace entry_steps
}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_ENTRY_STEPS_H_
