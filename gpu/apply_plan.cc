#include "gpu/apply_plan.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace isthmus {
namespace {

// Index of `position` among ascending positions that hold it from `*at` on, or −1; moves *at past it.
int64_t Take(const std::vector<uint32_t>& positions, uint32_t position, size_t* at) {
  if (*at == positions.size() || positions[*at] != position) return -1;
  return static_cast<int64_t>((*at)++);
}

}  // namespace

ApplyPlan::ApplyPlan(const Update& update, int tensor, int64_t size, const OuterStep& step,
                     const DecodedTensor* own) {
  const UpdateTensor& sent = update.tensors[tensor];
  dense_ = step.form == OuterForm::kNesterov || sent.form == TensorForm::kDense ||
           (own != nullptr && own->form == TensorForm::kDense);
  has_sums_ = sent.form != TensorForm::kAbsent;
  has_weights_ = has_sums_ && update.averaging == Averaging::kContributors;
  has_own_ = own != nullptr;
  args_.scale = std::ldexp(1.0, sent.exponent);
  args_.total_weight = static_cast<double>(update.total_weight);
  args_.own_scale = own == nullptr ? 0 : std::ldexp(1.0, own->exponent);
  args_.rate = step.rate;
  args_.momentum_rate = step.momentum;
  if (dense_) {
    FillDense(sent, size, own);
  } else {
    JoinPositions(sent, own);
    FillSparse(sent, own);
  }
}

void ApplyPlan::JoinPositions(const UpdateTensor& update, const DecodedTensor* own) {
  positions_ = update.positions;
  if (own == nullptr) return;
  std::vector<uint32_t> joined;
  std::set_union(positions_.begin(), positions_.end(), own->positions.begin(), own->positions.end(),
                 std::back_inserter(joined));
  positions_ = std::move(joined);
}

void ApplyPlan::FillDense(const UpdateTensor& update, int64_t size, const DecodedTensor* own) {
  args_.count = size;
  if (has_sums_) sums_.assign(size, 0);
  if (has_weights_) weights_.assign(size, 0);
  if (has_own_) own_.assign(size, 0);
  for (size_t i = 0; i < update.sums.size(); ++i) {
    const size_t at = update.form == TensorForm::kDense ? i : update.positions[i];
    sums_[at] = update.sums[i];
    if (has_weights_) weights_[at] = update.weights[i];
  }
  for (size_t i = 0; has_own_ && i < own->mantissas.size(); ++i) {
    own_[own->form == TensorForm::kDense ? i : own->positions[i]] = own->mantissas[i];
  }
}

void ApplyPlan::FillSparse(const UpdateTensor& update, const DecodedTensor* own) {
  args_.count = static_cast<int64_t>(positions_.size());
  size_t sent_at = 0, own_at = 0;
  for (uint32_t position : positions_) {
    const int64_t sent = Take(update.positions, position, &sent_at);
    if (has_sums_) sums_.push_back(sent < 0 ? 0 : update.sums[sent]);
    if (has_weights_) weights_.push_back(sent < 0 ? 0 : update.weights[sent]);
    if (!has_own_) continue;
    const int64_t mine = Take(own->positions, position, &own_at);
    own_.push_back(mine < 0 ? 0 : own->mantissas[mine]);
  }
}

ApplyTensorArgs ApplyPlan::Args() const {
  ApplyTensorArgs args = args_;
  args.positions = dense_ ? nullptr : positions_.data();
  args.sums = has_sums_ ? sums_.data() : nullptr;
  args.weights = has_weights_ ? weights_.data() : nullptr;
  args.own = has_own_ ? own_.data() : nullptr;
  return args;
}

}  // namespace isthmus
