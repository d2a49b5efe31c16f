// The Codec seam: a difference of two fp32 arrays in, a frame of bytes out, and back to exact integers.
//
// Decoded values are integer mantissas times a power of two, one exponent per tensor, so that sums of many
// sites' frames are exact in any order (ROUNDS §8). The bytes are described in FORMAT.md.
#ifndef ISTHMUS_COMPRESSION_CODEC_H_
#define ISTHMUS_COMPRESSION_CODEC_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/layout.h"
#include "compression/simd_path.h"

namespace isthmus {

enum class TensorForm : uint8_t {
  kAbsent = 0,  // nothing sent: all zeros
  kSparse = 1,  // positions and mantissas
  kDense = 2,   // one mantissa for every value
  kRows = 3,    // in a frame's table only: sparse, but of some rows of a matrix; decodes to kSparse
};

// One tensor's decoded payload: value = mantissa · 2^exponent.
struct DecodedTensor {
  TensorForm form = TensorForm::kAbsent;
  int32_t exponent = 0;
  int32_t mantissa_bits = 0;  // M of ROUNDS §8: bits of the codec's largest mantissa (levels 20, dense 24)
  std::vector<uint32_t> positions;  // kSparse: strictly increasing, below the tensor's size
  std::vector<int32_t> mantissas;   // signed; kSparse: one per position; kDense: one per value
};

struct DecodedFrame {
  std::vector<DecodedTensor> tensors;  // as many as the layout has
};

struct CheckedFrame;  // checked_frame.h

// Stateless and deterministic: the same input gives the same bytes (given the same zstd). Thread-safe.
class Codec {
 public:
  virtual ~Codec() = default;

  // Canonical text of the codec spec; ParseCodecSpec of it gives an equal codec.
  virtual std::string spec() const = 0;

  // Encodes d = fp32(anchor − parameters), both layout.total() long; writes neither.
  // INVALID_ARGUMENT when a difference is NaN or Inf, naming tensor and position.
  virtual absl::StatusOr<std::string> Encode(const Layout& layout, absl::Span<const float> anchor,
                                             absl::Span<const float> parameters) const = 0;

  // The same with a separate residual e (residual.h), decayed by β first: encodes
  // sum = fp32(fp32(β·e) + fp32(anchor − parameters)) as Encode would, and `left` becomes the residual after,
  // fp32(sum − Decode(frame)). All arrays are as long; `left` overlaps none of the others, and holds anything
  // after an error. INVALID_ARGUMENT when a sum is NaN or Inf or β not within 0 ... 1.
  virtual absl::StatusOr<std::string> EncodeResidualTo(const Layout& layout, absl::Span<const float> anchor,
                                                       absl::Span<const float> parameters, float beta,
                                                       absl::Span<const float> residual,
                                                       absl::Span<float> left) const;
  // In place, with a copy of the residual as scratch; it is untouched on any error.
  absl::StatusOr<std::string> EncodeResidual(const Layout& layout, absl::Span<const float> anchor,
                                             absl::Span<const float> parameters, float beta,
                                             absl::Span<float> residual) const;

  // Reads a frame that may come from an enemy: bounds before allocation, no crash, memory at most a small
  // multiple of the layout. INVALID_ARGUMENT: malformed, other layout or spec; DATA_LOSS: checksum.
  virtual absl::StatusOr<DecodedFrame> Decode(const Layout& layout, absl::string_view frame) const = 0;

  // Proves a frame good as Decode does, with the same errors, but keeps of sparse tensors only what a sum
  // needs. *checked keeps its memory from use to use; after an error it holds nothing of use.
  virtual absl::Status Check(const Layout& layout, absl::string_view frame, CheckedFrame* checked) const;

  // Largest frame Encode can give for this layout, in bytes; longer input is refused before it is read.
  virtual int64_t BoundBytes(const Layout& layout) const = 0;
};

// How a codec works; frames do not depend on it.
struct CodecOptions {
  int threads = 1;  // that encode, the caller's among them; at least 1. Not for dense(bits=24) and masks.
  SimdPath path = BestSimdPath();  // one that is there
};

// The summable codecs of codec_spec.h's grammar. INVALID_ARGUMENT: not of the grammar (errors point at the
// character), carry-only, or one this program does not have.
absl::StatusOr<std::unique_ptr<Codec>> ParseCodecSpec(absl::string_view spec,
                                                      const CodecOptions& options = {});

// The value the decoder's consumer computes: float(mantissa · 2^exponent), rounded once.
float DecodedValue(int32_t mantissa, int32_t exponent);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_CODEC_H_
