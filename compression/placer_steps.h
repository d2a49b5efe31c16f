// How the vector paths place full blocks: running sums of the gaps of some blocks, regardless of where those
// begin, then block by block what these mean. Included once by each path's file, which defines ISTHMUS_PATH
// before, the attribute of its functions: nothing here could be inlined into them otherwise.
#ifndef ISTHMUS_COMPRESSION_PLACER_STEPS_H_
#define ISTHMUS_COMPRESSION_PLACER_STEPS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "compression/entry_placer.h"

namespace isthmus {
namespace {

// Gap bytes taken at a time.
constexpr size_t kBytes = 64;
// About how many entries are made ready before they are finished, so that they are still in the cache.
constexpr int kChunkEntries = 1024;
// Of an entry's running sum less its block's these bits are 0, or the position passes the block's end. Sums
// are modulo 2^16. A wrong one cannot look right: fewer than 128 bytes, of at most 255 each, lie between two
// entries (kBytes escapes in one go end the work), so the first position past the end shows these bits.
constexpr int kPastEnd = 0xF000;
static_assert(kBlockValues == 0x1000, "positions have 12 bits");

// At least 57 bits of the value stream from `bit` on.
ISTHMUS_PATH inline uint64_t BitsFrom(const uint8_t* values, size_t bit) {
  uint64_t bits;
  std::memcpy(&bits, values + bit / 8, sizeof bits);
  return bits >> (bit % 8);
}

// Up to which bit, that one counted, `ends` has so many.
ISTHMUS_PATH inline size_t PrefixOf(uint64_t ends, int count) {
  int bits = count;
  for (int found = 0; found < count; bits += count - found)
    found = __builtin_popcountll(ends & ~uint64_t{0} >> (64 - bits));
  return static_cast<size_t>(bits);
}

// How many bytes so many gaps take.
inline size_t BytesOf(const uint8_t* gaps, int64_t entries) {
  size_t at = 0;
  for (; entries > 0; ++at) entries -= gaps[at] != 255;
  return at;
}

// `Path` has, static:
//   Running: the sum of all gaps and one for each, modulo 2^16, up to where it is. Begin() is 0.
//   uint64_t Sums(gaps, Running* running, Entry* out): kBytes bytes on; for each that ends a gap the sum. May
//     write kBytes sums. Which bytes end one.
//   bool Finish(values, bit, value_bits, count, base, Entry* entries): makes entries of a block's sums,
//   `base`
//     being the sum before it. False when a position passes the end.
template <typename Path>
ISTHMUS_PATH inline PlacedBlocks PlaceFull(const EntryStreams& streams, int kept, int blocks,
                                           Entry* entries) {
  PlacedBlocks placed;
  const size_t bits = static_cast<size_t>(kept) * static_cast<size_t>(streams.value_bits);
  size_t bit = streams.first_bit;
  while (placed.blocks < blocks) {
    const int chunk = std::min(blocks - placed.blocks, std::max(1, kChunkEntries / kept));
    const uint8_t* gaps = streams.gaps + placed.gap_bytes;
    const size_t left = streams.gap_bytes - placed.gap_bytes;
    typename Path::Running running = Path::Begin();
    int there = 0, before = 0;  // sums, and how many without the last bytes taken
    uint64_t ends = 1;
    size_t at = 0;
    // What is more than the chunk's is written over by the next one, or lies in the slack.
    while (there < chunk * kept && left - at >= kBytes && ends != 0) {
      ends = Path::Sums(gaps + at, &running, entries + there);
      before = there;
      there += __builtin_popcountll(ends);
      at += kBytes;
    }
    const int whole = std::min(chunk, there / kept);
    int good = 0;
    for (uint16_t base = 0; good < whole; ++good, bit += bits, entries += kept) {
      const uint16_t next = entries[kept - 1];
      if (!Path::Finish(streams.values, bit, streams.value_bits, kept, base, entries)) break;
      base = next;
    }
    placed.blocks += good;
    if (good < chunk) {
      placed.gap_bytes += BytesOf(gaps, int64_t{good} * kept);
      break;
    }
    placed.gap_bytes += at - kBytes + PrefixOf(ends, chunk * kept - before);
  }
  return placed;
}

}  // namespace
}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_PLACER_STEPS_H_
