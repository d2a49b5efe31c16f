// Dense integers of 8 or 4 bits: every value, groups that share a power of two, one exponent per tensor;
// of 4 bits also after a randomised Hadamard transform. Summable like all codecs (ROUNDS §8).
#ifndef ISTHMUS_COMPRESSION_GROUP_CODEC_H_
#define ISTHMUS_COMPRESSION_GROUP_CODEC_H_

#include <memory>
#include <string>

#include "compression/codec.h"
#include "compression/codec_spec.h"
#include "compression/encode_plan.h"
#include "compression/frame_format.h"
#include "compression/group_block.h"
#include "compression/group_form.h"

namespace isthmus {

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

  // As Decode, into a frame whose memory is used again.
  absl::Status DecodeInto(const Layout& layout, absl::string_view frame, DecodedFrame* decoded) const;

 private:
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
