// Values at positions that both ends derive from a seed, so that none are sent: sign and one, two or four
// magnitude levels per block, as in the sparse form. The same positions in every frame.
#ifndef ISTHMUS_COMPRESSION_MASK_CODEC_H_
#define ISTHMUS_COMPRESSION_MASK_CODEC_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "compression/codec.h"
#include "compression/codec_spec.h"
#include "compression/frame_format.h"

namespace isthmus {

// Thread-safe.
class MaskCodec : public Codec {
 public:
  // spec.kind is kMask.
  explicit MaskCodec(const CodecSpec& spec);

  std::string spec() const override { return text_; }
  absl::StatusOr<std::string> Encode(const Layout& layout, absl::Span<const float> anchor,
                                     absl::Span<const float> parameters) const override;
  absl::StatusOr<DecodedFrame> Decode(const Layout& layout, absl::string_view frame) const override;
  int64_t BoundBytes(const Layout& layout) const override;

 private:
  FrameLimits Limits(const Layout& layout) const;

  const CodecSpec spec_;
  const std::string text_;
};

// The positions.size() positions of a block of `values`, ascending: at most as many as it has.
void MaskPositions(int seed, int tensor, int64_t block, int values, absl::Span<uint16_t> positions);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_MASK_CODEC_H_
