#include "compression/group_block.h"

#include <algorithm>
#include <cstring>

#include "compression/split_mix.h"

namespace isthmus {
namespace {

constexpr uint32_t kInfinity = 0x7F800000u;
// From 2^115 on the sums of 4096 values might not be finite: such segments are scaled by 2^−20 first.
constexpr uint32_t kLargeBits = (127 + 115) << 23;
constexpr int kLargeDown = 20;

int GroupsOf(const GroupSegment& segment, int group) { return (segment.values + group - 1) / group; }

}  // namespace

HadamardSigns::HadamardSigns(int seed) {
  SplitMix random(static_cast<uint64_t>(seed));
  for (int word = 0; word < kBlockValues / 64; ++word) {
    const uint64_t bits = random.Next();
    for (int i = 0; i < 64; ++i) of[64 * word + i] = static_cast<uint32_t>(bits >> i & 1) << 31;
  }
}

bool GroupBlock::Take(const float* anchor, const float* parameters, const GroupSegment& segment, int* down) {
  const GroupScan& scan = ScanOf(segment);
  const int n = segment.values, group = segment.log2 == 0 ? form_.group() : n;
  float* values = values_ + segment.first;
  scan.difference(anchor + segment.first, parameters + segment.first, n, group, values, largest_);
  *down = 0;
  const uint32_t largest = *std::max_element(largest_, largest_ + (n + group - 1) / group);
  if (largest >= kInfinity || segment.log2 == 0) return largest < kInfinity;
  for (int i = 0; i < n; ++i) {
    uint32_t bits;
    std::memcpy(&bits, values + i, sizeof bits);
    bits ^= signs_->of[segment.first + i];
    std::memcpy(values + i, &bits, sizeof bits);
  }
  if (largest >= kLargeBits) {
    *down = kLargeDown;
    for (int i = 0; i < n; ++i) values[i] *= 0x1p-20f;
  }
  scan.hadamard(values, n);
  scan.largest(values, n, form_.group(), largest_);
  return true;
}

void GroupBlock::Quantize(const GroupSegment& segment, int down, const int* exponents, uint8_t* out) const {
  const int groups = GroupsOf(segment, form_.group());
  const auto [least, most] = std::minmax_element(exponents, exponents + groups);
  // Of values near the largest floats some may have to be cut.
  const bool is_plain = *least >= -126 && *most < 120 && down == 0;
  const GroupScan& scan = is_plain ? ScanOf(segment) : PortableGroupScan();
  const float* in = values_ + segment.first;
  if (form_.bits() == 8) {
    scan.quantize8(in, segment.values, form_.group(), exponents, out + segment.first);
  } else {
    scan.quantize4(in, segment.values, form_.group(), exponents, out + segment.first / 2);
  }
}

bool GroupBlock::Encode(const float* anchor, const float* parameters, int values, int16_t* exponents,
                        uint8_t* out) {
  bool is_finite = true;
  form_.ForEachSegment(values, [&](const GroupSegment& segment) {
    int down = 0;
    if (!is_finite || !(is_finite = Take(anchor, parameters, segment, &down))) return;
    // What is in values_ is worth 2^from of it.
    const int from = down - segment.log2;
    const int most = form_.most_exponent() + form_.most_shift() - segment.log2;
    int at[kMostBlockGroups];
    for (int g = 0; g < GroupsOf(segment, form_.group()); ++g) {
      const bool is_zero = largest_[g] == 0;
      const int e = is_zero ? 0 : std::clamp(form_.ExponentOf(largest_[g]) + from, kLeastExponent, most);
      exponents[segment.first_group + g] = is_zero ? kNoGroupExponent : static_cast<int16_t>(e);
      at[g] = is_zero ? 0 : e - from;
    }
    Quantize(segment, down, at, out);
  });
  return is_finite;
}

void GroupBlock::EncodeAgain(const float* anchor, const float* parameters, int values,
                             const int16_t* exponents, int least, uint8_t* out) {
  form_.ForEachSegment(values, [&](const GroupSegment& segment) {
    int down = 0;
    Take(anchor, parameters, segment, &down);
    int at[kMostBlockGroups];
    for (int g = 0; g < GroupsOf(segment, form_.group()); ++g) {
      const int e = exponents[segment.first_group + g];
      at[g] = e == kNoGroupExponent ? 0 : std::max(e, least) - down + segment.log2;
    }
    Quantize(segment, down, at, out);
  });
}

bool GroupBlock::Decode(const uint8_t* in, int values, const uint8_t* shifts, int32_t* out) {
  bool fits = true;
  form_.ForEachSegment(values, [&](const GroupSegment& segment) {
    const GroupScan& scan = ScanOf(segment);
    const uint8_t* of_groups = shifts + segment.first_group;
    int32_t* to = out + segment.first;
    fits &= form_.bits() == 8
                ? scan.decode8(in + segment.first, segment.values, form_.group(), of_groups, to)
                : scan.decode4(in + segment.first / 2, segment.values, form_.group(), of_groups, to);
    if (segment.log2 == 0) return;
    scan.hadamard_integers(to, segment.values);
    for (int i = 0; i < segment.values; ++i) {
      const int32_t sign = static_cast<int32_t>(signs_->of[segment.first + i]) >> 31;
      to[i] = (to[i] ^ sign) - sign;
    }
  });
  return fits;
}

}  // namespace isthmus
