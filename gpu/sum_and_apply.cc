#include "gpu/sum_and_apply.h"

#include <cmath>
#include <memory>
#include <optional>

#include "compression/float_mode.h"
#include "compression/tensor_sum.h"
#include "compression/tensor_work.h"
#include "compression/update_builder.h"
#include "gpu/block_apply.h"
#include "gpu/mean_values.h"

namespace isthmus {
namespace {

// What one thread needs for tensor after tensor.
class Worker {
 public:
  Worker(const OuterStep& step, int64_t total_weight, Averaging averaging, SimdPath path)
      : step_(step),
        total_weight_(total_weight),
        path_(path),
        apply_(BlockApplyOf(path)),
        mean_values_(MeanValuesOf(path)) {
    needs_.weights = averaging == Averaging::kContributors;
    needs_.takes_pairs = true;
  }

  // `out` may be null.
  void Tensor(const TensorSum& sum, float* anchor, UpdateTensor* out) {
    const PlainFloatScope plain;
    std::optional<UpdateTensorBuilder> builder;
    if (out != nullptr) builder.emplace(sum, needs_.weights, path_, out);
    needs_.marks = out != nullptr;
    needs_.soon = anchor;
    sum.Run(needs_, &scratch_, [&](const BlockSums& sums) {
      if (builder.has_value()) builder->Append(sums);
      const auto block_step = [&] {
        return BlockStep::Of(sum.exponent() + sums.shift, total_weight_, step_.rate);
      };
      if (sums.pairs != nullptr) {
        apply_.pairs(block_step(), sums.pairs, sums.values, anchor + sums.from);
      } else if (sums.narrow != nullptr && sums.weights == nullptr) {
        apply_.narrow(block_step(), sums.narrow, sums.values, anchor + sums.from);
      } else {
        ApplyMeans(sums, sum.exponent(), anchor + sums.from);
      }
      ClearRest(sums);
    });
    if (builder.has_value()) builder->Finish();
  }

 private:
  // The general way: sums wide, a weight for each.
  void ApplyMeans(const BlockSums& sums, int exponent, float* anchor) {
    const int64_t* wide = sums.wide;
    if (wide == nullptr) {
      const int64_t unit = int64_t{1} << sums.shift;
      for (int i = 0; i < sums.values; ++i) wide_[i] = sums.narrow[i] * unit;
      wide = wide_;
    }
    const MeanScale scale{std::ldexp(1.0, exponent), static_cast<double>(total_weight_)};
    mean_values_(scale, wide, sums.weights, sums.values, means_);
    for (int i = 0; i < sums.values; ++i) {
      const float shift = step_.rate * means_[i];
      anchor[i] = anchor[i] - shift;
    }
  }

  // What BlockApply has not cleared already.
  static void ClearRest(BlockSums sums) {
    sums.pairs = nullptr;
    if (sums.weights == nullptr) sums.narrow = nullptr;
    ClearBlock(sums);
  }

  const OuterStep step_;
  const int64_t total_weight_;
  const SimdPath path_;
  const BlockApply& apply_;
  const MeanValuesFn mean_values_;
  SumNeeds needs_;
  SumScratch scratch_;
  int64_t wide_[kBlockValues];
  float means_[kBlockValues];
};

}  // namespace

bool CanSumAndApply(const OuterStep& step) {
  return step.form == OuterForm::kPlain && std::isfinite(step.rate) && !std::signbit(step.rate);
}

void SumAndApplyBlocks(const Layout& layout, absl::Span<const WeightedFrame> frames, Averaging averaging,
                       const OuterStep& step, const SumOptions& options, absl::Span<float> anchor,
                       Update* update) {
  int64_t total_weight = 0;
  for (const WeightedFrame& f : frames) total_weight += f.weight;
  if (update != nullptr) {
    update->averaging = averaging;
    update->total_weight = total_weight;
    update->tensors.resize(layout.tensors());
  }
  ForEachTensor(layout.tensors(), options.threads, [&] {
    return [&, worker = std::make_shared<Worker>(step, total_weight, averaging, options.path)](int t) {
      worker->Tensor(TensorSum(t, layout.size(t), frames), anchor.data() + layout.offset(t),
                     update == nullptr ? nullptr : &update->tensors[t]);
    };
  });
}

}  // namespace isthmus
