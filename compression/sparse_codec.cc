#include "compression/sparse_codec.h"

#include "compression/difference.h"
#include "compression/float_mode.h"
#include "compression/frame_format.h"
#include "compression/sparse_decoder.h"

namespace isthmus {

SparseCodec::SparseCodec(const CodecSpec& spec, const EncodePlan& plan)
    : spec_(spec), plan_(plan), text_(SpecText(spec)), limits_(spec) {}

absl::StatusOr<std::string> SparseCodec::Encode(const Layout& layout, absl::Span<const float> anchor,
                                                absl::Span<const float> parameters) const {
  if (absl::Status s = CheckEncodeInput(layout, anchor, parameters); !s.ok()) return s;
  const PlainFloatScope plain;
  const absl::StatusOr<FrameBody> body = EncodeSparse(spec_, plan_, layout, anchor, parameters);
  if (!body.ok()) return body.status();
  return SealFrame(layout, text_, spec_.zstd_level, *body);
}

absl::StatusOr<DecodedFrame> SparseCodec::Decode(const Layout& layout, absl::string_view frame) const {
  const absl::StatusOr<FrameBody> body = OpenFrame(layout, text_, SparseFrameLimits(limits_, layout), frame);
  if (!body.ok()) return body.status();
  return DecodeSparse(limits_, layout, *body);
}

int64_t SparseCodec::BoundBytes(const Layout& layout) const {
  return FrameBound(layout, text_, SparseFrameLimits(limits_, layout));
}

}  // namespace isthmus
