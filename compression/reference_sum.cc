#include "compression/reference_sum.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace isthmus {
namespace {

// One site's tensor as position → mantissa.
std::map<uint32_t, __int128> Sent(const DecodedTensor& tensor) {
  std::map<uint32_t, __int128> sent;
  for (size_t i = 0; i < tensor.mantissas.size(); ++i) {
    sent[tensor.form == TensorForm::kDense ? static_cast<uint32_t>(i) : tensor.positions[i]] =
        tensor.mantissas[i];
  }
  return sent;
}

__int128 PowerOfTwo(int exponent) { return exponent == 0 ? 1 : 2 * PowerOfTwo(exponent - 1); }

UpdateTensor ReferenceTensor(size_t tensor, absl::Span<const WeightedFrame> frames, Averaging averaging) {
  UpdateTensor out;
  std::set<int> exponents, mantissa_bits;
  std::vector<size_t> present;
  for (size_t f = 0; f < frames.size(); ++f) {
    const DecodedTensor& t = frames[f].frame->tensors[tensor];
    if (t.form == TensorForm::kAbsent) continue;
    if (std::count(frames[f].refused.begin(), frames[f].refused.end(), tensor) > 0) {
      out.left_out.push_back(static_cast<uint16_t>(f));
      continue;
    }
    present.push_back(f);
    exponents.insert(t.exponent);
    mantissa_bits.insert(t.mantissa_bits);
  }
  if (present.empty()) return out;
  const int spread = 34 - *mantissa_bits.rbegin();
  out.exponent = std::max(*exponents.rbegin() - spread, *exponents.begin());
  std::map<uint32_t, std::pair<__int128, int32_t>> sums;
  for (size_t f : present) {
    const DecodedTensor& t = frames[f].frame->tensors[tensor];
    if (t.exponent < out.exponent) {
      out.left_out.push_back(static_cast<uint16_t>(f));
      continue;
    }
    if (t.form == TensorForm::kDense) out.form = TensorForm::kDense;
    for (const auto& [position, mantissa] : Sent(t)) {
      sums[position].first += frames[f].weight * mantissa * PowerOfTwo(t.exponent - out.exponent);
      sums[position].second += frames[f].weight;
    }
  }
  std::sort(out.left_out.begin(), out.left_out.end());
  if (out.form != TensorForm::kDense) out.form = TensorForm::kSparse;
  for (const auto& [position, sum] : sums) {
    if (out.form == TensorForm::kSparse) out.positions.push_back(position);
    out.sums.push_back(static_cast<int64_t>(sum.first));
    if (averaging == Averaging::kContributors) out.weights.push_back(sum.second);
  }
  return out;
}

}  // namespace

Update ReferenceSum(const Layout& layout, absl::Span<const WeightedFrame> frames, Averaging averaging) {
  Update update;
  update.averaging = averaging;
  for (const WeightedFrame& f : frames) update.total_weight += f.weight;
  for (int t = 0; t < layout.tensors(); ++t) update.tensors.push_back(ReferenceTensor(t, frames, averaging));
  return update;
}

bool SameUpdate(const Update& a, const Update& b) {
  return a.averaging == b.averaging && a.total_weight == b.total_weight &&
         std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(),
                    [](const UpdateTensor& x, const UpdateTensor& y) {
                      return x.form == y.form && x.exponent == y.exponent && x.positions == y.positions &&
                             x.sums == y.sums && x.weights == y.weights && x.left_out == y.left_out;
                    });
}

}  // namespace isthmus
