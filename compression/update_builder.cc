#include "compression/update_builder.h"

#include <algorithm>
#include <cstring>

namespace isthmus {

UpdateTensorBuilder::UpdateTensorBuilder(const TensorSum& sum, bool has_weights, SimdPath path,
                                         UpdateTensor* out)
    : take_(BlockTakeOf(path)), out_(out) {
  out->form = sum.form();
  out->exponent = sum.exponent();
  out->left_out = sum.left_out();
  // Not emptied first: what a vector held before it need not write anew to grow again.
  const size_t most = sum.form() == TensorForm::kAbsent ? 0 : sum.MostPositions() + kTakeSlack;
  out->sums.resize(most);
  out->positions.resize(sum.form() == TensorForm::kSparse ? most : 0);
  out->weights.resize(has_weights ? most : 0);
}

void UpdateTensorBuilder::Append(const BlockSums& sums) {
  int64_t* const to = out_->sums.data() + count_;
  int32_t* const weights = sums.weights == nullptr ? nullptr : out_->weights.data() + count_;
  if (out_->form == TensorForm::kSparse) {
    count_ += static_cast<size_t>(take_(sums, {out_->positions.data() + count_, to, weights}));
    return;
  }
  const int64_t unit = int64_t{1} << sums.shift;
  for (int i = 0; i < sums.values; ++i) to[i] = sums.narrow == nullptr ? sums.wide[i] : sums.narrow[i] * unit;
  if (weights != nullptr) std::copy(sums.weights, sums.weights + sums.values, weights);
  count_ += static_cast<size_t>(sums.values);
}

void UpdateTensorBuilder::Finish() {
  out_->sums.resize(count_);
  if (!out_->positions.empty()) out_->positions.resize(count_);
  if (!out_->weights.empty()) out_->weights.resize(count_);
}

void ClearBlock(const BlockSums& sums) {
  const size_t values = static_cast<size_t>(sums.values);
  if (sums.pairs != nullptr) std::memset(sums.pairs, 0, 2 * values * sizeof *sums.pairs);
  if (sums.narrow != nullptr) std::memset(sums.narrow, 0, values * sizeof *sums.narrow);
  if (sums.wide != nullptr) std::memset(sums.wide, 0, values * sizeof *sums.wide);
  if (sums.weights != nullptr) std::memset(sums.weights, 0, values * sizeof *sums.weights);
  if (sums.marks != nullptr) std::memset(sums.marks, 0, kSumMarkWords * sizeof *sums.marks);
}

}  // namespace isthmus
