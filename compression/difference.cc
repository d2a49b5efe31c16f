#include "compression/difference.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace isthmus {
namespace {

const char* KindOf(float v) { return std::isnan(v) ? "NaN" : std::isinf(v) ? "Inf" : "finite"; }

}  // namespace

absl::Status CheckEncodeInput(const Layout& layout, absl::Span<const float> anchor,
                              absl::Span<const float> parameters) {
  const size_t total = static_cast<size_t>(layout.total());
  if (anchor.size() != total || parameters.size() != total) {
    return absl::InvalidArgumentError(absl::StrCat("encode: anchor of ", anchor.size(), " and parameters of ",
                                                   parameters.size(), " values, the layout has ", total));
  }
  for (int t = 0; t < layout.tensors(); ++t) {
    if (layout.size(t) > int64_t{UINT32_MAX}) {
      return absl::InvalidArgumentError(absl::StrCat("encode: tensor ", t, " has over 2^32 values"));
    }
  }
  return absl::OkStatus();
}

bool TakeDifference(absl::Span<const float> anchor, absl::Span<const float> parameters,
                    absl::Span<float> differences) {
  uint32_t largest = 0;
  for (size_t i = 0; i < differences.size(); ++i) {
    const float d = anchor[i] - parameters[i];
    differences[i] = d;
    uint32_t bits;
    std::memcpy(&bits, &d, sizeof bits);
    bits &= 0x7FFFFFFFu;
    largest = bits > largest ? bits : largest;
  }
  return largest < 0x7F800000u;
}

absl::Status NonFiniteDifference(const Layout& layout, int tensor, int64_t from,
                                 absl::Span<const float> anchor, absl::Span<const float> parameters) {
  int64_t position = from;
  const int64_t offset = layout.offset(tensor);
  while (position + 1 < layout.size(tensor) &&
         std::isfinite(anchor[offset + position] - parameters[offset + position])) {
    ++position;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "encode: the difference of tensor ", tensor, " at position ", position, " is not finite (anchor ",
      KindOf(anchor[offset + position]), ", parameter ", KindOf(parameters[offset + position]), ")"));
}

absl::Status CheckResidualInput(const Layout& layout, absl::Span<const float> anchor,
                                absl::Span<const float> parameters, const DecayedResidual& residual,
                                size_t left) {
  if (absl::Status s = CheckEncodeInput(layout, anchor, parameters); !s.ok()) return s;
  if (residual.values.size() != anchor.size() || left != anchor.size()) {
    return absl::InvalidArgumentError(absl::StrCat("encode: a residual of ", residual.values.size(),
                                                   " values and room for ", left, ", the layout has ",
                                                   anchor.size()));
  }
  if (!(residual.beta >= 0 && residual.beta <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("encode: the residual's decay is ", residual.beta, ", must be between 0 and 1"));
  }
  return absl::OkStatus();
}

bool TakeSum(absl::Span<const float> anchor, absl::Span<const float> parameters,
             const DecayedResidual& residual, absl::Span<float> sums) {
  uint32_t largest = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    const float kept = residual.beta * residual.values[i];
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

absl::Status NonFiniteSum(const Layout& layout, int tensor, int64_t from, absl::Span<const float> anchor,
                          absl::Span<const float> parameters, const DecayedResidual& residual) {
  const int64_t begin = layout.offset(tensor) + from, end = layout.offset(tensor) + layout.size(tensor);
  int64_t at = begin;
  float sum;
  while (at + 1 < end && TakeSum(anchor.subspan(at, 1), parameters.subspan(at, 1),
                                 {residual.values.subspan(at, 1), residual.beta}, absl::MakeSpan(&sum, 1))) {
    ++at;
  }
  return absl::InvalidArgumentError(absl::StrCat("encode: the residual of tensor ", tensor, " at position ",
                                                 at - layout.offset(tensor), " would not be finite (anchor ",
                                                 KindOf(anchor[at]), ", parameter ", KindOf(parameters[at]),
                                                 ", residual ", KindOf(residual.values[at]), ")"));
}

}  // namespace isthmus
