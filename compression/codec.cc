#include "compression/codec.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "compression/codec_spec.h"
#include "compression/dense_codec.h"
#include "compression/encode_plan.h"
#include "compression/group_codec.h"
#include "compression/mask_codec.h"
#include "compression/sparse_codec.h"

namespace isthmus {

absl::StatusOr<std::unique_ptr<Codec>> ParseCodecSpec(absl::string_view spec, const CodecOptions& options) {
  const absl::StatusOr<CodecSpec> parsed = ParseSpecText(spec);
  if (!parsed.ok()) return parsed.status();
  if (!IsSummable(*parsed)) {
    return absl::InvalidArgumentError(
        absl::StrCat("codec spec \"", spec,
                     "\" carries values from end to end; what is summed needs topk, mask or dense"));
  }
  switch (parsed->kind) {
    case CodecSpec::Kind::kTopK:
      return std::make_unique<SparseCodec>(*parsed, EncodePlan{options.path, options.threads});
    case CodecSpec::Kind::kDense:
      if (parsed->value_bits == 24) return std::make_unique<DenseCodec>(*parsed);
      return std::make_unique<GroupCodec>(*parsed, EncodePlan{options.path, options.threads});
    default:
      return std::make_unique<MaskCodec>(*parsed);
  }
}

float DecodedValue(int32_t mantissa, int32_t exponent) {
  return static_cast<float>(std::ldexp(static_cast<double>(mantissa), exponent));
}

}  // namespace isthmus
