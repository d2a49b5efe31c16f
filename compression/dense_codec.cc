#include "compression/dense_codec.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compression/difference.h"
#include "compression/float_mode.h"
#include "compression/level_table.h"

namespace isthmus {
namespace {

constexpr int kPlanes = 3;  // bytes of a mantissa, two's complement, low ones first

// The least exponent in range with |largest| rounded to a mantissa of 23 bits.
int DenseExponent(double largest) {
  int exponent = 0;
  std::frexp(largest, &exponent);
  exponent = std::max(exponent - 23, kLeastExponent);
  if (std::nearbyint(std::ldexp(largest, -exponent)) > kLargestDenseMantissa) ++exponent;
  return std::min(exponent, kMostDenseExponent);
}

// Appends one tensor, plane after plane; `differences` are finite.
TensorHeader EncodeTensor(absl::Span<const float> differences, std::string* values) {
  float largest = 0;
  for (float d : differences) largest = std::max(largest, std::fabs(d));
  TensorHeader header;
  if (largest == 0) return header;
  header.form = TensorForm::kDense;
  header.value_bits = kDenseMantissaBits;
  header.exponent = static_cast<int16_t>(DenseExponent(largest));
  const double scale = std::ldexp(1.0, -header.exponent);
  const size_t n = differences.size(), first = values->size();
  values->resize(first + kPlanes * n);
  char* planes = &(*values)[first];
  for (size_t i = 0; i < n; ++i) {
    // Exact in double but for the rounding to an integer, half to even. Only at the top exponent can a value
    // round past the largest mantissa.
    const double scaled = std::nearbyint(static_cast<double>(differences[i]) * scale);
    const int32_t m = std::clamp(static_cast<int32_t>(scaled), -kLargestDenseMantissa, kLargestDenseMantissa);
    for (int p = 0; p < kPlanes; ++p)
      planes[p * n + i] = static_cast<char>(static_cast<uint32_t>(m) >> (8 * p));
  }
  return header;
}

FrameLimits Limits(const Layout& layout) {
  FrameLimits limits;
  limits.value_bytes = kPlanes * layout.total();
  return limits;
}

// False when a mantissa is −2^23, which no encoder writes.
bool DecodeTensor(absl::string_view planes, DecodedTensor* out) {
  const size_t n = planes.size() / kPlanes;
  out->form = TensorForm::kDense;
  out->mantissa_bits = kDenseMantissaBits;
  out->mantissas.resize(n);
  bool fits = true;
  for (size_t i = 0; i < n; ++i) {
    uint32_t bits = 0;
    for (int p = 0; p < kPlanes; ++p)
      bits |= static_cast<uint32_t>(static_cast<uint8_t>(planes[p * n + i])) << (8 * p);
    const int32_t m = static_cast<int32_t>(bits ^ 0x800000u) - 0x800000;
    fits &= m >= -kLargestDenseMantissa;
    out->mantissas[i] = m;
  }
  return fits;
}

}  // namespace

DenseCodec::DenseCodec(const CodecSpec& spec) : spec_(spec), text_(SpecText(spec)) {}

absl::StatusOr<std::string> DenseCodec::Encode(const Layout& layout, absl::Span<const float> anchor,
                                               absl::Span<const float> parameters) const {
  if (absl::Status s = CheckEncodeInput(layout, anchor, parameters); !s.ok()) return s;
  const PlainFloatScope plain;
  FrameBody body;
  std::vector<float> differences;
  for (int t = 0; t < layout.tensors(); ++t) {
    differences.resize(layout.size(t));
    if (!TakeDifference(anchor.subspan(layout.offset(t), layout.size(t)),
                        parameters.subspan(layout.offset(t), layout.size(t)), absl::MakeSpan(differences))) {
      return NonFiniteDifference(layout, t, 0, anchor, parameters);
    }
    body.tensors.push_back(EncodeTensor(differences, &body.values));
  }
  return SealFrame(layout, text_, spec_.zstd_level, body);
}

absl::StatusOr<DecodedFrame> DenseCodec::Decode(const Layout& layout, absl::string_view frame) const {
  const absl::StatusOr<FrameBody> body = OpenFrame(layout, text_, Limits(layout), frame);
  if (!body.ok()) return body.status();
  absl::string_view values = body->values;
  DecodedFrame decoded;
  decoded.tensors.resize(layout.tensors());
  for (int t = 0; t < layout.tensors(); ++t) {
    const TensorHeader& header = body->tensors[t];
    if (header.form == TensorForm::kAbsent) continue;
    const auto error = [t](auto... what) {
      return absl::InvalidArgumentError(absl::StrCat("frame: tensor ", t, ": ", what...));
    };
    if (header.form != TensorForm::kDense) return error("not of the dense form");
    if (header.value_bits != kDenseMantissaBits || header.k != 0)
      return error("other settings than the codec spec");
    if (header.exponent < kLeastExponent || header.exponent > kMostDenseExponent) {
      return error("exponent ", header.exponent, " is outside ", kLeastExponent, " to ", kMostDenseExponent,
                   ", where values are finite");
    }
    const size_t bytes = static_cast<size_t>(kPlanes * layout.size(t));
    if (values.size() < bytes) return error("value stream ends");
    if (!DecodeTensor(values.substr(0, bytes), &decoded.tensors[t]))
      return error("a mantissa of over 23 bits");
    decoded.tensors[t].exponent = header.exponent;
    values.remove_prefix(bytes);
  }
  if (!values.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("frame: value stream has ", values.size(), " bytes left over"));
  }
  return decoded;
}

int64_t DenseCodec::BoundBytes(const Layout& layout) const {
  return FrameBound(layout, text_, Limits(layout));
}

}  // namespace isthmus
