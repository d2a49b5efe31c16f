#include "compression/residual.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "compression/difference.h"
#include "compression/float_mode.h"

namespace isthmus {
namespace {

// values[i] ← combine(values[i], decoded) for every value sent in the tensors included.
template <typename Combine>
void ForEachSent(const Layout& layout, const DecodedFrame& frame, const std::vector<bool>& included,
                 float* values, Combine combine) {
  const PlainFloatScope plain;
  for (int t = 0; t < layout.tensors(); ++t) {
    if (!included.empty() && !included[t]) continue;
    const DecodedTensor& tensor = frame.tensors[t];
    // As DecodedValue: the product is exact in double, the conversion rounds it once.
    const double scale = std::ldexp(1.0, tensor.exponent);
    const bool is_dense = tensor.form == TensorForm::kDense;
    for (size_t i = 0; i < tensor.mantissas.size(); ++i) {
      float* value = &values[layout.offset(t) + (is_dense ? i : tensor.positions[i])];
      *value = combine(*value, static_cast<float>(tensor.mantissas[i] * scale));
    }
  }
}

}  // namespace

void SubtractDecoded(const Layout& layout, const DecodedFrame& frame, const std::vector<bool>& included,
                     absl::Span<float> residual) {
  ForEachSent(layout, frame, included, residual.data(), [](float value, float sent) { return value - sent; });
}

void AddDecoded(const Layout& layout, const DecodedFrame& frame, const std::vector<bool>& included,
                absl::Span<float> residual) {
  ForEachSent(layout, frame, included, residual.data(), [](float value, float sent) { return value + sent; });
}

absl::StatusOr<std::string> Codec::EncodeResidualTo(const Layout& layout, absl::Span<const float> anchor,
                                                    absl::Span<const float> parameters, float beta,
                                                    absl::Span<const float> residual,
                                                    absl::Span<float> left) const {
  if (absl::Status s = CheckResidualInput(layout, anchor, parameters, {residual, beta}, left.size()); !s.ok())
    return s;
  const PlainFloatScope plain;
  for (int t = 0; t < layout.tensors(); ++t) {
    const int64_t at = layout.offset(t), values = layout.size(t);
    if (!TakeSum(anchor.subspan(at, values), parameters.subspan(at, values),
                 {residual.subspan(at, values), beta}, left.subspan(at, values))) {
      return NonFiniteSum(layout, t, 0, anchor, parameters, {residual, beta});
    }
  }
  // A sum less zero is the sum, whatever its sign.
  const std::vector<float> zeros(left.size(), 0.0f);
  absl::StatusOr<std::string> frame = Encode(layout, left, zeros);
  if (!frame.ok()) return frame;
  const absl::StatusOr<DecodedFrame> decoded = Decode(layout, *frame);
  if (!decoded.ok()) return decoded.status();
  SubtractDecoded(layout, *decoded, {}, left);
  return frame;
}

absl::StatusOr<std::string> Codec::EncodeResidual(const Layout& layout, absl::Span<const float> anchor,
                                                  absl::Span<const float> parameters, float beta,
                                                  absl::Span<float> residual) const {
  std::vector<float> left(residual.size());
  absl::StatusOr<std::string> frame =
      EncodeResidualTo(layout, anchor, parameters, beta, residual, absl::MakeSpan(left));
  if (frame.ok()) std::copy(left.begin(), left.end(), residual.begin());
  return frame;
}

}  // namespace isthmus
