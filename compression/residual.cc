#include "compression/residual.h"

#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/difference.h"
#include "compression/float_mode.h"

namespace isthmus {
namespace {

const char* KindOf(float v) { return std::isnan(v) ? "NaN" : std::isinf(v) ? "Inf" : "finite"; }

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

absl::Status CheckResidualInput(const Layout& layout, absl::Span<const float> anchor,
                                absl::Span<const float> parameters, float beta,
                                absl::Span<const float> residual) {
  if (absl::Status s = CheckEncodeInput(layout, anchor, parameters); !s.ok()) return s;
  if (residual.size() != anchor.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("encode: a residual of ", residual.size(), " values, the layout has ", anchor.size()));
  }
  if (!(beta >= 0 && beta <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("encode: the residual's decay is ", beta, ", must be between 0 and 1"));
  }
  return absl::OkStatus();
}

bool TakeResidualSum(absl::Span<const float> anchor, absl::Span<const float> parameters, float beta,
                     absl::Span<const float> residual, absl::Span<float> sums) {
  uint32_t largest = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    const float kept = beta * residual[i];
    const float difference = anchor[i] - parameters[i];
    const float sum = kept + difference;
    sums[i] = sum;
    uint32_t bits;
    std::memcpy(&bits, &sum, sizeof bits);
    bits &= 0x7FFFFFFFu;
    largest = bits > largest ? bits : largest;
  }
  return largest < 0x7F800000u;
}

absl::Status NonFiniteResidual(const Layout& layout, int tensor, int64_t from, absl::Span<const float> anchor,
                               absl::Span<const float> parameters, float beta,
                               absl::Span<const float> residual) {
  const int64_t offset = layout.offset(tensor);
  int64_t position = from;
  const auto is_finite = [&](int64_t at) {
    const float kept = beta * residual[at];
    const float difference = anchor[at] - parameters[at];
    return std::isfinite(kept + difference);
  };
  while (position + 1 < layout.size(tensor) && is_finite(offset + position)) ++position;
  const int64_t at = offset + position;
  return absl::InvalidArgumentError(absl::StrCat(
      "encode: the residual of tensor ", tensor, " at position ", position, " would not be finite (anchor ",
      KindOf(anchor[at]), ", parameter ", KindOf(parameters[at]), ", residual ", KindOf(residual[at]), ")"));
}

void SubtractDecoded(const Layout& layout, const DecodedFrame& frame, const std::vector<bool>& included,
                     absl::Span<float> residual) {
  ForEachSent(layout, frame, included, residual.data(), [](float value, float sent) { return value - sent; });
}

void AddDecoded(const Layout& layout, const DecodedFrame& frame, const std::vector<bool>& included,
                absl::Span<float> residual) {
  ForEachSent(layout, frame, included, residual.data(), [](float value, float sent) { return value + sent; });
}

absl::StatusOr<std::string> Codec::EncodeResidual(const Layout& layout, absl::Span<const float> anchor,
                                                  absl::Span<const float> parameters, float beta,
                                                  absl::Span<float> residual) const {
  if (absl::Status s = CheckResidualInput(layout, anchor, parameters, beta, residual); !s.ok()) return s;
  const PlainFloatScope plain;
  std::vector<float> sums(residual.size());
  for (int t = 0; t < layout.tensors(); ++t) {
    const int64_t at = layout.offset(t), values = layout.size(t);
    if (!TakeResidualSum(anchor.subspan(at, values), parameters.subspan(at, values), beta,
                         residual.subspan(at, values), absl::MakeSpan(sums).subspan(at, values))) {
      return NonFiniteResidual(layout, t, 0, anchor, parameters, beta, residual);
    }
  }
  // A sum less zero is the sum, whatever its sign.
  const std::vector<float> zeros(sums.size(), 0.0f);
  absl::StatusOr<std::string> frame = Encode(layout, sums, zeros);
  if (!frame.ok()) return frame;
  const absl::StatusOr<DecodedFrame> decoded = Decode(layout, *frame);
  if (!decoded.ok()) return decoded.status();
  SubtractDecoded(layout, *decoded, {}, absl::MakeSpan(sums));
  std::memcpy(residual.data(), sums.data(), sums.size() * sizeof(float));
  return frame;
}

}  // namespace isthmus
