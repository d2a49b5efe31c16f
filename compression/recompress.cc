#include "compression/recompress.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compression/float_mode.h"
#include "compression/level_table.h"

namespace isthmus {
namespace {

constexpr int kSumBits = 52;
// Below one value in so many, positions cost less than zeros.
constexpr int64_t kSparseBelow = 8;

absl::Status CheckInput(const Layout& layout, const Update& exact, size_t residual) {
  if (residual != static_cast<size_t>(layout.total()) ||
      exact.tensors.size() != static_cast<size_t>(layout.tensors()) || exact.total_weight < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "recompress: a residual of ", residual, " values and an update of ", exact.tensors.size(),
        " tensors do not fit a layout of ", layout.total(), " values in ", layout.tensors(), " tensors"));
  }
  for (int t = 0; t < layout.tensors(); ++t) {
    const UpdateTensor& tensor = exact.tensors[t];
    const bool is_sparse = tensor.form == TensorForm::kSparse;
    const size_t count = is_sparse                           ? tensor.positions.size()
                         : tensor.form == TensorForm::kDense ? static_cast<size_t>(layout.size(t))
                                                             : 0;
    const bool has_weights = exact.averaging == Averaging::kContributors;
    if (tensor.sums.size() != count || (has_weights && tensor.weights.size() != count) ||
        (is_sparse && count > 0 && tensor.positions.back() >= layout.size(t))) {
      return absl::InvalidArgumentError(
          absl::StrCat("recompress: tensor ", t, " of the update does not fit"));
    }
  }
  return absl::OkStatus();
}

// −mean of every value, so that a codec given (residual, this) encodes fp32(residual + mean).
std::vector<float> NegativeMeans(const Layout& layout, const Update& exact) {
  std::vector<float> out(static_cast<size_t>(layout.total()));
  for (int t = 0; t < layout.tensors(); ++t) {
    const UpdateTensor& tensor = exact.tensors[t];
    const double scale = std::ldexp(1.0, tensor.exponent);
    float* const values = out.data() + layout.offset(t);
    for (size_t i = 0; i < tensor.sums.size(); ++i) {
      const double weight =
          static_cast<double>(exact.averaging == Averaging::kPeers ? exact.total_weight : tensor.weights[i]);
      const double scaled = static_cast<double>(tensor.sums[i]) * scale;
      const float mean = weight == 0 ? 0.0f : static_cast<float>(scaled / weight);
      values[tensor.form == TensorForm::kDense ? i : tensor.positions[i]] = -mean;
    }
  }
  return out;
}

Update EmptyLike(const Update& exact) {
  Update out;
  out.averaging = Averaging::kPeers;
  out.total_weight = 1;
  out.tensors.resize(exact.tensors.size());
  for (size_t t = 0; t < out.tensors.size(); ++t) out.tensors[t].left_out = exact.tensors[t].left_out;
  return out;
}

// A decoded tensor as sums, without zeros where positions name them.
void TakeDecoded(DecodedTensor decoded, UpdateTensor* out) {
  const auto is_zero = [](int32_t m) { return m == 0; };
  if (std::all_of(decoded.mantissas.begin(), decoded.mantissas.end(), is_zero)) return;
  out->form = decoded.form;
  out->exponent = decoded.exponent;
  if (decoded.form == TensorForm::kDense) {
    out->sums.assign(decoded.mantissas.begin(), decoded.mantissas.end());
    return;
  }
  for (size_t i = 0; i < decoded.positions.size(); ++i) {
    if (decoded.mantissas[i] == 0) continue;
    out->positions.push_back(decoded.positions[i]);
    out->sums.push_back(decoded.mantissas[i]);
  }
}

// residual − (what is sent of it), value by value.
void SubtractSent(const UpdateTensor& sent, float* residual) {
  const double scale = std::ldexp(1.0, sent.exponent);
  for (size_t i = 0; i < sent.sums.size(); ++i) {
    float* const value = &residual[sent.form == TensorForm::kDense ? i : sent.positions[i]];
    *value = *value - static_cast<float>(static_cast<double>(sent.sums[i]) * scale);
  }
}

// The exponent at which integers of 52 bits hold as much of the values as they can; false when all are zero.
bool FlushExponent(const float* values, int64_t count, int* exponent) {
  int highest = kLeastExponent, lowest = INT32_MAX;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, &values[i], sizeof bits);
    const uint32_t fraction = bits & 0x7FFFFFu;
    const int biased = static_cast<int>(bits >> 23 & 0xFF);
    if (biased == 0 && fraction == 0) continue;
    // value = mantissa · 2^at
    const uint32_t mantissa = biased == 0 ? fraction : fraction | 0x800000u;
    const int at = (biased == 0 ? 1 : biased) - 150;
    highest = std::max(highest, at + 32 - __builtin_clz(mantissa));
    lowest = std::min(lowest, at + __builtin_ctz(mantissa));
  }
  if (lowest == INT32_MAX) return false;
  // At most what an update's table takes: there the largest float still has 20 bits.
  *exponent = std::min(std::max(lowest, highest - kSumBits), kMostLevelExponent);
  return true;
}

void TakeAll(const float* values, int64_t count, UpdateTensor* out) {
  if (!FlushExponent(values, count, &out->exponent)) return;
  const double scale = std::ldexp(1.0, -out->exponent);
  const int64_t present = count - std::count(values, values + count, 0.0f);
  out->form = present < count / kSparseBelow ? TensorForm::kSparse : TensorForm::kDense;
  for (int64_t i = 0; i < count; ++i) {
    const auto sum = static_cast<int64_t>(std::nearbyint(static_cast<double>(values[i]) * scale));
    if (out->form == TensorForm::kSparse && sum == 0) continue;
    if (out->form == TensorForm::kSparse) out->positions.push_back(static_cast<uint32_t>(i));
    out->sums.push_back(sum);
  }
}

}  // namespace

absl::StatusOr<Update> Recompress(const Layout& layout, const Codec& codec, const Update& exact,
                                  absl::Span<float> residual) {
  if (absl::Status s = CheckInput(layout, exact, residual.size()); !s.ok()) return s;
  const PlainFloatScope plain;
  const std::vector<float> negative_means = NegativeMeans(layout, exact);
  const absl::StatusOr<std::string> frame = codec.Encode(layout, residual, negative_means);
  if (!frame.ok()) return frame.status();
  absl::StatusOr<DecodedFrame> decoded = codec.Decode(layout, *frame);
  if (!decoded.ok()) return decoded.status();
  Update out = EmptyLike(exact);
  for (size_t i = 0; i < residual.size(); ++i) residual[i] = residual[i] - negative_means[i];
  for (int t = 0; t < layout.tensors(); ++t) {
    TakeDecoded(std::move(decoded->tensors[t]), &out.tensors[t]);
    SubtractSent(out.tensors[t], residual.data() + layout.offset(t));
  }
  return out;
}

absl::StatusOr<Update> FlushResidual(const Layout& layout, const Update& exact, absl::Span<float> residual) {
  if (absl::Status s = CheckInput(layout, exact, residual.size()); !s.ok()) return s;
  const PlainFloatScope plain;
  const std::vector<float> negative_means = NegativeMeans(layout, exact);
  for (size_t i = 0; i < residual.size(); ++i) {
    if (!std::isfinite(residual[i] - negative_means[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("flush: residual and mean give no finite number at value ", i));
    }
  }
  Update out = EmptyLike(exact);
  for (size_t i = 0; i < residual.size(); ++i) residual[i] = residual[i] - negative_means[i];
  for (int t = 0; t < layout.tensors(); ++t) {
    float* const values = residual.data() + layout.offset(t);
    TakeAll(values, layout.size(t), &out.tensors[t]);
    SubtractSent(out.tensors[t], values);
  }
  return out;
}

double SquareSum(absl::Span<const float> values) {
  double sum = 0;
  for (float v : values) sum += static_cast<double>(v) * static_cast<double>(v);
  return sum;
}

}  // namespace isthmus
