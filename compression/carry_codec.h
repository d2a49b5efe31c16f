// Codecs that carry values from one end to the other: activations and other traffic that nobody sums.
//
// Floats in, bytes out, floats back; all either end has to know beside the spec is how many. Bytes are in
// FORMAT.md. Any summable codec serves too.
#ifndef ISTHMUS_COMPRESSION_CARRY_CODEC_H_
#define ISTHMUS_COMPRESSION_CARRY_CODEC_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/codec.h"

namespace isthmus {

// Stateless and deterministic: the same values give the same bytes (given the same zstd). Thread-safe.
class CarryCodec {
 public:
  virtual ~CarryCodec() = default;

  // Canonical text of the codec spec; ParseCarrySpec of it gives an equal codec.
  virtual std::string spec() const = 0;

  // fp32 and bf16 carry NaN and Inf; the others give INVALID_ARGUMENT for them, naming the position. Below
  // 2^32 values.
  virtual absl::StatusOr<std::string> Encode(absl::Span<const float> values) const = 0;

  // Fills `values` from bytes that may come from an enemy: bounds before allocation, memory a small multiple
  // of the values. INVALID_ARGUMENT: malformed, another spec, or of another number of values; DATA_LOSS:
  // checksum. After an error the values mean nothing.
  virtual absl::Status Decode(absl::string_view bytes, absl::Span<float> values) const = 0;

  // Most bytes Encode gives for so many values; longer input is refused before it is read.
  virtual int64_t BoundBytes(int64_t values) const = 0;
};

// Any codec of codec_spec.h's grammar. INVALID_ARGUMENT as ParseCodecSpec.
absl::StatusOr<std::unique_ptr<CarryCodec>> ParseCarrySpec(absl::string_view spec,
                                                           const CodecOptions& options = {});

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_CARRY_CODEC_H_
