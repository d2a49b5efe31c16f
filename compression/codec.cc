#include "compression/codec.h"

#include <cmath>

#include "compression/codec_spec.h"
#include "compression/dense_codec.h"
#include "compression/sparse_codec.h"

namespace isthmus {

absl::StatusOr<std::unique_ptr<Codec>> ParseCodecSpec(absl::string_view spec, const CodecOptions& options) {
  const absl::StatusOr<CodecSpec> parsed = ParseSpecText(spec);
  if (!parsed.ok()) return parsed.status();
  if (parsed->kind == CodecSpec::Kind::kDense) return std::make_unique<DenseCodec>(*parsed);
  return std::make_unique<SparseCodec>(*parsed, EncodePlan{options.path, options.threads});
}

float DecodedValue(int32_t mantissa, int32_t exponent) {
  return static_cast<float>(std::ldexp(static_cast<double>(mantissa), exponent));
}

}  // namespace isthmus
