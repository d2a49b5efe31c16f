#include "compression/checked_frame.h"

#include <utility>

namespace isthmus {

void CheckedFrame::Clear() {
  decoded.tensors.clear();
  placed.clear();
  counts.clear();
  entries.clear();
  levels.clear();
}

absl::Status Codec::Check(const Layout& layout, absl::string_view frame, CheckedFrame* checked) const {
  checked->Clear();
  absl::StatusOr<DecodedFrame> decoded = Decode(layout, frame);
  if (decoded.ok()) checked->decoded = *std::move(decoded);
  return decoded.status();
}

}  // namespace isthmus
