// Adds a block's entries to its sums. No vector instructions help here: a sum changes in one place at a time.
//
// Sums are exact; the caller sees to it that none leaves its type.
#ifndef ISTHMUS_COMPRESSION_ENTRY_SUM_H_
#define ISTHMUS_COMPRESSION_ENTRY_SUM_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "compression/entry_placer.h"

namespace isthmus {

// Memory that will be wanted soon, asked for bit by bit while something else is done: a processor asks for
// only a few lines at once, and waits when those are all on their way.
class SoonWanted {
 public:
  // In about `parts` equal parts, one more at most.
  SoonWanted(const void* begin, size_t bytes, size_t parts)
      : next_(static_cast<const char*>(begin)),
        end_(next_ + bytes),
        step_((bytes / kLine / (parts + 1) + 1) * kLine) {}
  SoonWanted() = default;  // nothing

  // The next part.
  void Ask() {
    const char* part_end = next_ + step_;
    if (part_end > end_) part_end = end_;
    for (; next_ < part_end; next_ += kLine) __builtin_prefetch(next_, 0, 2);
  }
  // Bytes not asked for yet.
  size_t left() const { return next_ < end_ ? static_cast<size_t>(end_ - next_) : 0; }

 private:
  static constexpr size_t kLine = 64;
  const char* next_ = nullptr;
  const char* end_ = nullptr;
  size_t step_ = 0;
};

// Entries that are added from one part of what is wanted soon to the next, and so many parts.
inline constexpr int kEntriesAPart = 8;

// Four entries, loaded at once: loads are what there is least room for.
template <typename Use>
inline void UseFour(const Entry* entries, Use use) {
  uint64_t four;
  std::memcpy(&four, entries, sizeof four);
  use(static_cast<Entry>(four));
  use(static_cast<Entry>(four >> 16));
  use(static_cast<Entry>(four >> 32));
  use(static_cast<Entry>(four >> 48));
}

// Calls use(entry) for each, asking for what is wanted soon meanwhile.
template <typename Use>
inline void ForEachEntry(const Entry* entries, int count, SoonWanted* wanted, Use use) {
  constexpr int kAhead = 512;  // entries; of this site's next blocks
  SoonWanted soon = *wanted;   // not in memory, where `use` might write for all the compiler knows
  int i = 0;
  for (; count - i >= kEntriesAPart; i += kEntriesAPart) {
    if (i % 32 == 0) __builtin_prefetch(entries + i + kAhead);
    soon.Ask();
    UseFour(entries + i, use);
    UseFour(entries + i + 4, use);
  }
  for (; i < count; ++i) use(entries[i]);
  *wanted = soon;
}

// Of values of one bit: pairs[entry] += level, which is the position's sum of those above 0 (even) or of
// those below (odd).
inline void AddToPairs(const Entry* entries, int count, int16_t level, SoonWanted* wanted, int16_t* pairs) {
  ForEachEntry(entries, count, wanted, [=](Entry e) { pairs[e] = static_cast<int16_t>(pairs[e] + level); });
}

// sums[position] += mantissas[code].
inline void AddToSums(const Entry* entries, int count, int value_bits, const int32_t* mantissas,
                      SoonWanted* wanted, int32_t* sums) {
  const uint32_t code = (1u << value_bits) - 1;
  ForEachEntry(entries, count, wanted,
               [=](Entry e) { sums[uint32_t{e} >> value_bits] += mantissas[e & code]; });
}

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_ENTRY_SUM_H_
