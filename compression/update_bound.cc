#include "compression/update_bound.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

namespace isthmus {
namespace {

using Magnitude = std::pair<int64_t, int32_t>;  // and the weight, 0 where there are none

double FactorialBits(double n) { return std::lgamma(n + 1) / std::log(2.0); }

// Σ count · log2(total / count).
double EntropyBits(const std::map<Magnitude, int64_t>& counts) {
  double total = 0, bits = 0;
  for (const auto& [magnitude, count] : counts) total += static_cast<double>(count);
  for (const auto& [magnitude, count] : counts) {
    bits += static_cast<double>(count) * std::log2(total / static_cast<double>(count));
  }
  return bits;
}

void AddTensor(int64_t size, const UpdateTensor& tensor, UpdateBound* bound) {
  std::map<Magnitude, int64_t> listed;
  double orders = 0;
  size_t at = 0;
  for (int64_t from = 0; from < size && at < tensor.positions.size(); from += kBlockValues) {
    const int64_t values = std::min(kBlockValues, size - from);
    std::map<Magnitude, int64_t> counts;
    const size_t first = at;
    for (; at < tensor.positions.size() && tensor.positions[at] < from + values; ++at) {
      ++counts[{std::abs(tensor.sums[at]), tensor.weights.empty() ? 0 : tensor.weights[at]}];
      bound->signs += tensor.sums[at] != 0;
    }
    bound->positions += ChoiceBits(values, static_cast<int64_t>(at - first));
    bound->names += EntropyBits(counts);
    for (const auto& [magnitude, count] : counts) ++listed[magnitude];
    orders += FactorialBits(static_cast<double>(counts.size()));
  }
  bound->literals += std::max(0.0, EntropyBits(listed) - orders);
}

}  // namespace

double ChoiceBits(int64_t n, int64_t k) {
  const auto total = static_cast<double>(n), chosen = static_cast<double>(k);
  return FactorialBits(total) - FactorialBits(chosen) - FactorialBits(total - chosen);
}

UpdateBound BoundOf(const Layout& layout, const Update& update) {
  UpdateBound bound;
  for (int t = 0; t < layout.tensors(); ++t) {
    const UpdateTensor& tensor = update.tensors[t];
    if (tensor.form == TensorForm::kSparse) AddTensor(layout.size(t), tensor, &bound);
  }
  return bound;
}

absl::StatusOr<UpdateBound> BoundOfFrames(const Layout& layout, absl::Span<const WeightedFrame> frames) {
  UpdateBound sum;
  for (const WeightedFrame& frame : frames) {
    const absl::StatusOr<Update> one = SumFrames(layout, {frame}, Averaging::kPeers);
    if (!one.ok()) return one.status();
    const UpdateBound bound = BoundOf(layout, *one);
    sum.positions += bound.positions;
    sum.names += bound.names;
    sum.literals += bound.literals;
    sum.signs += bound.signs;
  }
  return sum;
}

}  // namespace isthmus
