// Dense integers of 8 or 4 bits: every value, groups that share a power of two, one exponent per tensor;
// of 4 bits also after a randomised Hadamard transform. Summable like all codecs (ROUNDS §8).
#ifndef ISTHMUS_COMPRESSION_GROUP_CODEC_H_
#define ISTHMUS_COMPRESSION_GROUP_CODEC_H_

#include <memory>
#include <string>
#include <vector>

#include "compression/codec.h"
#include "compression/codec_spec.h"
#include "compression/encode_plan.h"
#include "compression/frame_format.h"
#include "compression/group_block.h"
#include "compression/group_form.h"

namespace isthmus {

// What an encoding leaves for the next one to use again.
struct GroupScratch {
  std::vector<int16_t> exponents;
  FrameBody body;
};

// Frames do not depend on the plan. Thread-safe.
class GroupCodec : public Codec {
 public:
  // spec.kind is kDense, of 8 or 4 bits.
  GroupCodec(const CodecSpec& spec, const EncodePlan& plan);

  std::string spec() const override { return text_; }
  absl::StatusOr<std::string> Encode(const Layout& layout, absl::Span<const float> anchor,
                                     absl::Span<const float> parameters) const override;
  absl::StatusOr<DecodedFrame> Decode(const Layout& layout, absl::string_view frame) const override;
  int64_t BoundBytes(const Layout& layout) const override;

  // As Encode and Decode, in memory that is used again: at these speeds fresh pages cost more than the work.
  absl::Status EncodeInto(const Layout& layout, absl::Span<const float> anchor,
                          absl::Span<const float> parameters, GroupScratch* scratch,
                          std::string* frame) const;
  absl::Status DecodeInto(const Layout& layout, absl::string_view frame, FrameBody* scratch,
                          DecodedFrame* decoded) const;

 private:
  std::string StoredFront(const Layout& layout, size_t value_bytes) const;
  FrameLimits Limits(const Layout& layout) const;
  absl::Status CheckHeader(const TensorHeader& header, int tensor) const;
  absl::Status CheckShifts(absl::string_view shifts, int64_t tensor_values, int tensor) const;
  absl::Status DecodeTensor(int tensor, absl::string_view shifts, absl::string_view integers,
                            DecodedTensor* out) const;

  const CodecSpec spec_;
  const EncodePlan plan_;
  const std::string text_;
  const GroupForm form_;
  const std::unique_ptr<const HadamardSigns> signs_;  // null without a transform
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_GROUP_CODEC_H_
