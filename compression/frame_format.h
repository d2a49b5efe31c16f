// The bytes around a frame's payload: header, three packed streams, tensor table, checksum. See FORMAT.md.
//
// What the streams mean is the codec's; this only finds them, with bounds before allocation.
#ifndef ISTHMUS_COMPRESSION_FRAME_FORMAT_H_
#define ISTHMUS_COMPRESSION_FRAME_FORMAT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compression/codec.h"
#include "compression/layout.h"

namespace isthmus {

// One row of the tensor table. An absent tensor has none there; all is then 0.
struct TensorHeader {
  TensorForm form = TensorForm::kAbsent;
  uint8_t value_bits = 0;
  uint16_t k = 0;  // kSparse and kRows only
  int16_t exponent = 0;
  uint32_t rows = 0;  // kRows only: how many rows are sent
};

// A frame taken apart.
struct FrameBody {
  std::vector<TensorHeader> tensors;
  std::string levels, gaps, values;
};

// Largest raw streams a codec can fill for a layout.
struct FrameLimits {
  int64_t level_bytes = 0, gap_bytes = 0, value_bytes = 0;
};

// Bytes of gaps and values together that each piece of a frame but the last one has at least.
inline constexpr int64_t kLeastPieceBytes = 1 << 16;

// Writes a frame front to back, so that gaps and values need not be held until all are there.
class FrameWriter {
 public:
  // `spec` is the codec's canonical spec; room for `reserved` bytes is made at once.
  FrameWriter(const Layout& layout, absl::string_view spec, int zstd_level, int64_t reserved);

  // The next bytes of the gap and value streams, not both empty and, but for the last piece, together
  // kLeastPieceBytes or more.
  void Piece(absl::string_view gaps, absl::string_view values);
  // The frame. `tensors` are as many as the layout has. The writer is then of no more use.
  std::string Finish(absl::string_view levels, const std::vector<TensorHeader>& tensors);

 private:
  const int zstd_level_;
  std::string out_;
};

// A whole frame at once. `spec` is the codec's canonical spec, body.tensors as many as the layout has.
std::string SealFrame(const Layout& layout, absl::string_view spec, int zstd_level, const FrameBody& body);

// What SealFrame is made of, for codecs that put gaps and values between the two themselves. BeginFrame
// appends what comes before them; BeginPiece what comes before a packed stream of gaps and one of values, not
// both empty; EndFrame appends body.levels, the table and the checksum of all of *out.
void BeginFrame(const Layout& layout, absl::string_view spec, std::string* out);
void BeginPiece(std::string* out);
void EndFrame(int zstd_level, const FrameBody& body, std::string* out);

// Takes a frame apart. DATA_LOSS: too short, or the checksum differs; INVALID_ARGUMENT: longer than
// FrameBound, another version, layout or spec, or malformed. Exponents, k, bits and rows are not judged here.
absl::StatusOr<FrameBody> OpenFrame(const Layout& layout, absl::string_view spec, const FrameLimits& limits,
                                    absl::string_view frame);
// The same into memory that was used before; after an error *body holds nothing of use.
absl::Status OpenFrame(const Layout& layout, absl::string_view spec, const FrameLimits& limits,
                       absl::string_view frame, FrameBody* body);

// Most bytes a frame of this layout and spec can have.
int64_t FrameBound(const Layout& layout, absl::string_view spec, const FrameLimits& limits);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_FRAME_FORMAT_H_
