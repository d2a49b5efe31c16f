#include <algorithm>
#include <memory>

#include "compression/tensor_sum.h"
#include "compression/tensor_work.h"
#include "compression/update.h"
#include "compression/update_builder.h"

namespace isthmus {
namespace {

constexpr int32_t kLeastWeight = 16, kMostWeight = 256, kMedianWeight = 64;

}  // namespace

absl::StatusOr<Update> SumFrames(const Layout& layout, absl::Span<const WeightedFrame> frames,
                                 Averaging averaging, const SumOptions& options) {
  if (absl::Status s = CheckSumInput(layout, frames); !s.ok()) return s;
  Update update;
  update.averaging = averaging;
  for (const WeightedFrame& f : frames) update.total_weight += f.weight;
  update.tensors.resize(layout.tensors());
  SumNeeds needs;
  needs.weights = averaging == Averaging::kContributors;
  needs.marks = true;
  needs.takes_pairs = true;
  ForEachTensor(layout.tensors(), options.threads, [&] {
    return [&, scratch = std::make_shared<SumScratch>()](int t) {
      const TensorSum sum(t, layout.size(t), frames);
      UpdateTensorBuilder builder(sum, needs.weights, options.path, &update.tensors[t]);
      sum.Run(needs, scratch.get(), [&](const BlockSums& sums) {
        builder.Append(sums);
        ClearBlock(sums);
      });
      builder.Finish();
    };
  });
  return update;
}

std::vector<int32_t> ContributionWeights(absl::Span<const int64_t> measures) {
  std::vector<int32_t> weights;
  if (measures.empty()) return weights;
  std::vector<int64_t> sorted(measures.begin(), measures.end());
  std::sort(sorted.begin(), sorted.end());
  const __int128 median = sorted[(sorted.size() - 1) / 2];
  for (int64_t v : measures) {
    // round(64·v / median), halves up, without leaving the integers.
    const __int128 rounded = (2 * __int128{kMedianWeight} * v + median) / (2 * median);
    weights.push_back(static_cast<int32_t>(std::clamp<__int128>(rounded, kLeastWeight, kMostWeight)));
  }
  return weights;
}

}  // namespace isthmus
