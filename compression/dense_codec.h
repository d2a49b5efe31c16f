// Block-floating 24 bit: sign and 23 bits for every value, one exponent per tensor. Lossless in practice; the
// baseline.
#ifndef ISTHMUS_COMPRESSION_DENSE_CODEC_H_
#define ISTHMUS_COMPRESSION_DENSE_CODEC_H_

#include <string>

#include "compression/codec.h"
#include "compression/codec_spec.h"
#include "compression/frame_format.h"

namespace isthmus {

// Bits of a dense mantissa, the sign among them: what DecodedTensor::mantissa_bits says.
inline constexpr int kDenseMantissaBits = 24;
inline constexpr int32_t kLargestDenseMantissa = (1 << 23) - 1;
// At the top the largest mantissa is still a finite fp32.
inline constexpr int kMostDenseExponent = 105;

// Thread-safe.
class DenseCodec : public Codec {
 public:
  // spec.kind is kDense.
  explicit DenseCodec(const CodecSpec& spec);

  std::string spec() const override { return text_; }
  absl::StatusOr<std::string> Encode(const Layout& layout, absl::Span<const float> anchor,
                                     absl::Span<const float> parameters) const override;
  absl::StatusOr<DecodedFrame> Decode(const Layout& layout, absl::string_view frame) const override;
  int64_t BoundBytes(const Layout& layout) const override;

 private:
  const CodecSpec spec_;
  const std::string text_;
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_DENSE_CODEC_H_
