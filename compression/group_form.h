// What integers of 8 and 4 bits that share a scale per group look like in a frame (FORMAT.md). Header-only,
// pure.
#ifndef ISTHMUS_COMPRESSION_GROUP_FORM_H_
#define ISTHMUS_COMPRESSION_GROUP_FORM_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "compression/codec_spec.h"
#include "compression/layout.h"
#include "compression/level_table.h"

namespace isthmus {

// Values of a block that are transformed together, or that are not.
struct GroupSegment {
  int first = 0, values = 0;  // within the block
  int log2 = 0;               // of the values when they are transformed, else 0
  int first_group = 0;        // within the block
};

// Least transformed run: below, a transform has little to level out.
inline constexpr int kLeastHadamard = 64;

// Everything that follows from the spec. Plain value.
class GroupForm {
 public:
  // spec is a dense one of 8 or 4 bits.
  explicit GroupForm(const CodecSpec& spec)
      : bits_(spec.value_bits), group_(spec.group), is_hadamard_(spec.hadamard != kNoHadamard) {}

  int bits() const { return bits_; }
  int group() const { return group_; }
  bool is_hadamard() const { return is_hadamard_; }

  // Most a group's shift and its transform's log2 can be together. Aligned mantissas then have up to 7 + 13
  // or 3 + 17 bits; transformed ones 3 + 9 + 12, as many as dense(bits=24) so that sums reach as far down: a
  // whole block adds 4096 of them, and leaves nine bits to blocks of different scale.
  int most_shift() const { return bits_ == 8 ? 13 : is_hadamard_ ? 21 : 17; }
  int mantissa_bits() const { return is_hadamard_ ? 24 : 20; }
  // Where the largest decoded value is still a finite fp32.
  int most_exponent() const { return is_hadamard_ ? 104 : 108; }

  int64_t BytesOf(int64_t values) const { return bits_ == 8 ? values : (values + 1) / 2; }

  int64_t GroupsOf(int64_t tensor_values) const {
    const int64_t whole = tensor_values / kBlockValues;
    int64_t groups = whole * (kBlockValues / group_);
    ForEachSegment(static_cast<int>(tensor_values % kBlockValues),
                   [&](const GroupSegment& s) { groups += (s.values + group_ - 1) / group_; });
    return groups;
  }

  // Calls visit(segment) for those of a block of so many values, 0 … 4096, in order.
  template <typename Visit>
  void ForEachSegment(int values, Visit visit) const {
    GroupSegment segment;
    while (segment.first < values) {
      segment.values = values - segment.first;
      segment.log2 = 0;
      if (is_hadamard_ && segment.values >= kLeastHadamard) {
        while (2 << segment.log2 <= segment.values) ++segment.log2;
        segment.values = 1 << segment.log2;
      }
      visit(const_cast<const GroupSegment&>(segment));
      segment.first_group += (segment.values + group_ - 1) / group_;
      segment.first += segment.values;
    }
  }

  // The least exponent from kLeastExponent on at which a group with this largest magnitude (bits of |d|,
  // finite, not 0) rounds into range.
  int ExponentOf(uint32_t largest) const {
    // Mantissas that would round up to 128 or 8 carry into the exponent.
    const uint32_t carry = bits_ == 8 ? 0x10000 : 0x100000;
    int down = bits_ == 8 ? 133 : 129;
    for (; largest < 0x00800000u; largest <<= 1) ++down;  // a subnormal
    return std::max(static_cast<int>((largest + carry) >> 23) - down, kLeastExponent);
  }

 private:
  int bits_, group_;
  bool is_hadamard_;
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_GROUP_FORM_H_
