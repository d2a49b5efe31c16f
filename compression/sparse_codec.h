// Block top-k with sign and one, two or four magnitude levels per block (ROUNDS §8).
#ifndef ISTHMUS_COMPRESSION_SPARSE_CODEC_H_
#define ISTHMUS_COMPRESSION_SPARSE_CODEC_H_

#include <string>

#include "compression/codec.h"
#include "compression/codec_spec.h"
#include "compression/sparse_encoder.h"
#include "compression/sparse_limits.h"

namespace isthmus {

// Frames do not depend on the plan: its portable path is the oracle for the others. Thread-safe.
class SparseCodec : public Codec {
 public:
  // spec.kind is kTopK.
  SparseCodec(const CodecSpec& spec, const EncodePlan& plan);

  std::string spec() const override { return text_; }
  absl::StatusOr<std::string> Encode(const Layout& layout, absl::Span<const float> anchor,
                                     absl::Span<const float> parameters) const override;
  // One pass over memory where the spec's plans look at no values.
  absl::StatusOr<std::string> EncodeResidualTo(const Layout& layout, absl::Span<const float> anchor,
                                               absl::Span<const float> parameters, float beta,
                                               absl::Span<const float> residual,
                                               absl::Span<float> left) const override;
  absl::StatusOr<DecodedFrame> Decode(const Layout& layout, absl::string_view frame) const override;
  absl::Status Check(const Layout& layout, absl::string_view frame, CheckedFrame* checked) const override;
  int64_t BoundBytes(const Layout& layout) const override;

 private:
  const CodecSpec spec_;
  const EncodePlan plan_;
  const std::string text_;
  const SparseLimits limits_;
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_SPARSE_CODEC_H_
