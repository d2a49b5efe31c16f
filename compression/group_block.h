// One block of dense integers in groups, in and out of its bytes (FORMAT.md).
#ifndef ISTHMUS_COMPRESSION_GROUP_BLOCK_H_
#define ISTHMUS_COMPRESSION_GROUP_BLOCK_H_

#include <cstdint>

#include "compression/codec_spec.h"
#include "compression/group_form.h"
#include "compression/group_scan.h"
#include "compression/layout.h"
#include "compression/simd_path.h"

namespace isthmus {

// What a whole group of zeros has in place of an exponent.
inline constexpr int16_t kNoGroupExponent = INT16_MIN;
inline constexpr int kMostBlockGroups = static_cast<int>(kBlockValues) / 16;

// Which values of a block the transform takes negative: bits 31 of 4096 words, the others 0.
struct HadamardSigns {
  explicit HadamardSigns(int seed);
  alignas(64) uint32_t of[kBlockValues];
};

// A thread's means to encode and decode blocks; too large for a small stack. Blocks are of 1 … 4096 values,
// groups as many as form().GroupsOf(values). The floating-point mode is the caller's to set plain.
class GroupBlock {
 public:
  // `signs` outlives it; null without a transform.
  GroupBlock(const GroupForm& form, const HadamardSigns* signs, SimdPath path)
      : form_(form), signs_(signs), fast_(GroupScanOf(path)) {}

  const GroupForm& form() const { return form_; }

  // Encodes anchor − parameters, every group at its own least exponent, which goes to `exponents`. False when
  // a difference, or a sum of its transform, is not finite.
  bool Encode(const float* anchor, const float* parameters, int values, int16_t* exponents, uint8_t* out);

  // Encodes anew the block that gave `exponents`, its groups at those but no less than `least`.
  void EncodeAgain(const float* anchor, const float* parameters, int values, const int16_t* exponents,
                   int least, uint8_t* out);

  // The block's integers, aligned to the tensor's exponent. False when a byte is one no encoder writes.
  // Shifts have been checked.
  bool Decode(const uint8_t* in, int values, const uint8_t* shifts, int32_t* out);

 private:
  // Differences, transformed if the form says so, of one segment; down: by how many bits they were scaled.
  bool Take(const float* anchor, const float* parameters, const GroupSegment& segment, int* down);
  void Quantize(const GroupSegment& segment, int down, const int* exponents, uint8_t* out) const;
  const GroupScan& ScanOf(const GroupSegment& s) const {
    return s.values == kBlockValues ? fast_ : PortableGroupScan();
  }

  const GroupForm form_;
  const HadamardSigns* const signs_;
  const GroupScan& fast_;
  alignas(64) float values_[kBlockValues];
  uint32_t largest_[kMostBlockGroups];
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_GROUP_BLOCK_H_
