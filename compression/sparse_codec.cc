#include "compression/sparse_codec.h"

#include <utility>

#include "compression/checked_frame.h"
#include "compression/difference.h"
#include "compression/entry_placer.h"
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
  return EncodeSparse(spec_, plan_, layout, anchor, parameters);
}

absl::StatusOr<std::string> SparseCodec::EncodeResidualTo(const Layout& layout,
                                                          absl::Span<const float> anchor,
                                                          absl::Span<const float> parameters, float beta,
                                                          absl::Span<const float> residual,
                                                          absl::Span<float> left) const {
  const DecayedResidual before{residual, beta};
  if (absl::Status s = CheckResidualInput(layout, anchor, parameters, before, left.size()); !s.ok()) return s;
  const PlainFloatScope plain;
  if (!EncodesInOnePass(spec_, layout, anchor, parameters, before))
    return Codec::EncodeResidualTo(layout, anchor, parameters, beta, residual, left);
  return EncodeSparse(spec_, plan_, layout, anchor, parameters, ResidualPass{before, left});
}

absl::StatusOr<DecodedFrame> SparseCodec::Decode(const Layout& layout, absl::string_view frame) const {
  CheckedFrame checked;
  if (absl::Status s = Check(layout, frame, &checked); !s.ok()) return s;
  return UnpackSparse(layout, checked);
}

absl::Status SparseCodec::Check(const Layout& layout, absl::string_view frame, CheckedFrame* checked) const {
  // The calling thread's: streams made anew for each frame would be so many fresh pages.
  thread_local FrameBody body;
  if (absl::Status s = OpenFrame(layout, text_, SparseFrameLimits(limits_, layout), frame, &body); !s.ok())
    return s;
  return CheckSparse(limits_, layout, PlaceFullOf(plan_.path), &body, checked);
}

int64_t SparseCodec::BoundBytes(const Layout& layout) const {
  return FrameBound(layout, text_, SparseFrameLimits(limits_, layout));
}

}  // namespace isthmus
