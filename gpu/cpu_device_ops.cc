#include <algorithm>
#include <cmath>
#include <cstring>

#include "compression/float_mode.h"
#include "compression/tensor_sum.h"
#include "gpu/apply_input.h"
#include "gpu/device_ops.h"
#include "gpu/mean_values.h"
#include "gpu/sum_and_apply.h"

namespace isthmus {
namespace {

// Where an apply writes; parameters is null when only the anchor moves.
struct Arrays {
  float* anchor = nullptr;
  float* momentum = nullptr;
  float* parameters = nullptr;
};

// Moves one tensor's values by the rules of ROUNDS §5 and §8, one operation a line.
class TensorMover {
 public:
  TensorMover(const UpdateTensor& update, Averaging averaging, int64_t total_weight, const OuterStep& step,
              const DecodedTensor* own, const Arrays& arrays)
      : update_(update),
        weights_(averaging == Averaging::kContributors ? update.weights.data() : nullptr),
        scale_{std::ldexp(1.0, update.exponent), static_cast<double>(total_weight)},
        mean_values_(MeanValuesOf(BestSimdPath())),
        step_(step),
        own_(own),
        own_scale_(own == nullptr ? 1 : std::ldexp(1.0, own->exponent)),
        arrays_(arrays) {}

  void Move(int64_t size) {
    // Momentum moves every value, whether the update touches it or not.
    const bool all = step_.form == OuterForm::kNesterov || update_.form == TensorForm::kDense ||
                     (own_ != nullptr && own_->form == TensorForm::kDense);
    if (all) {
      for (int64_t i = 0; i < size; ++i) Value(i);
    } else if (own_ == nullptr && arrays_.parameters == nullptr) {
      MoveSentOnly();
    } else {
      MoveTouched();
    }
  }

 private:
  static constexpr size_t kMeans = 1024;

  int64_t NextSent() const {
    return sent_at_ < update_.positions.size() ? int64_t{update_.positions[sent_at_]} : INT64_MAX;
  }
  int64_t NextOwn() const {
    return own_ != nullptr && own_at_ < own_->positions.size() ? int64_t{own_->positions[own_at_]}
                                                               : INT64_MAX;
  }

  // Whatever update or own frame names.
  void MoveTouched() {
    while (true) {
      const int64_t next = std::min(NextSent(), NextOwn());
      if (next == INT64_MAX) return;
      Value(next);
    }
  }

  // The same where there is only the anchor and a sparse or absent update.
  void MoveSentOnly() {
    for (size_t from = 0; from < update_.sums.size(); from += kMeans) {
      FillMeans(from);
      const uint32_t* positions = update_.positions.data() + from;
      const size_t count = means_end_ - from;
      for (size_t i = 0; i < count; ++i) {
        float* value = &arrays_.anchor[positions[i]];
        const float shift = step_.rate * means_[i];
        *value = *value - shift;
      }
    }
  }

  // Computes the means of the sums from `from` on, as many as there is room for.
  void FillMeans(size_t from) {
    means_begin_ = from;
    means_end_ = std::min(from + kMeans, update_.sums.size());
    mean_values_(scale_, update_.sums.data() + from, weights_ == nullptr ? nullptr : weights_ + from,
                 static_cast<int>(means_end_ - from), means_);
  }

  // u at position i, which are asked for in ascending order.
  float TakeMean(int64_t i) {
    if (update_.form == TensorForm::kAbsent || (update_.form == TensorForm::kSparse && NextSent() != i))
      return 0;
    const size_t at = update_.form == TensorForm::kDense ? static_cast<size_t>(i) : sent_at_++;
    if (at >= means_end_) FillMeans(at);
    return means_[at - means_begin_];
  }

  // The own frame's value at position i, likewise. The product is exact in double.
  float TakeOwn(int64_t i) {
    if (own_ == nullptr || (own_->form == TensorForm::kSparse && NextOwn() != i)) return 0;
    const size_t at = own_->form == TensorForm::kDense ? static_cast<size_t>(i) : own_at_++;
    return static_cast<float>(static_cast<double>(own_->mantissas[at]) * own_scale_);
  }

  void Value(int64_t i) {
    const float u = TakeMean(i);
    const float own = TakeOwn(i);
    const float old_anchor = arrays_.anchor[i];
    float direction = u;
    if (step_.form == OuterForm::kNesterov) {
      const float kept = step_.momentum * arrays_.momentum[i];
      const float m = kept + u;
      arrays_.momentum[i] = m;
      const float ahead = step_.momentum * m;
      direction = u + ahead;
    }
    const float shift = step_.rate * direction;
    const float new_anchor = old_anchor - shift;
    arrays_.anchor[i] = new_anchor;
    if (arrays_.parameters == nullptr) return;
    const float carried = old_anchor - arrays_.parameters[i];
    const float left = carried - own;
    arrays_.parameters[i] = new_anchor - left;
  }

  const UpdateTensor& update_;
  const int32_t* const weights_;  // null: the total weight divides
  const MeanScale scale_;
  const MeanValuesFn mean_values_;
  const OuterStep step_;
  const DecodedTensor* own_;
  const double own_scale_;
  const Arrays arrays_;
  size_t sent_at_ = 0, own_at_ = 0;
  size_t means_begin_ = 0, means_end_ = 0;  // which sums' means are at hand
  float means_[kMeans];
};

void MoveAll(const Layout& layout, const Update& update, const OuterStep& step, const OwnFrame& own,
             const Arrays& arrays) {
  const PlainFloatScope plain;
  for (int t = 0; t < layout.tensors(); ++t) {
    const int64_t at = layout.offset(t);
    const Arrays slice{arrays.anchor + at, step.form == OuterForm::kNesterov ? arrays.momentum + at : nullptr,
                       arrays.parameters == nullptr ? nullptr : arrays.parameters + at};
    TensorMover(update.tensors[t], update.averaging, update.total_weight, step, OwnTensor(own, t), slice)
        .Move(layout.size(t));
  }
}

bool SameBits(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }

class CpuDeviceOps : public DeviceOps {
 public:
  explicit CpuDeviceOps(const SumOptions& options) : options_(options) {}

  std::string name() const override { return "cpu"; }

  absl::StatusOr<std::string> Encode(const Codec& codec, const Layout& layout, absl::Span<const float> anchor,
                                     absl::Span<const float> parameters) override {
    return codec.Encode(layout, anchor, parameters);
  }

  absl::StatusOr<Update> Sum(const Layout& layout, absl::Span<const WeightedFrame> frames,
                             Averaging averaging) override {
    return SumFrames(layout, frames, averaging, options_);
  }

  absl::Status ApplyToAnchor(const Layout& layout, const Update& update, const OuterStep& step,
                             absl::Span<float> anchor, absl::Span<float> momentum) override {
    if (absl::Status s = CheckUpdate(layout, update, step, {anchor.size(), momentum.size()}); !s.ok())
      return s;
    MoveAll(layout, update, step, OwnFrame(), {anchor.data(), momentum.data(), nullptr});
    return absl::OkStatus();
  }

  absl::Status SumAndApply(const Layout& layout, absl::Span<const WeightedFrame> frames, Averaging averaging,
                           const OuterStep& step, absl::Span<float> anchor, absl::Span<float> momentum,
                           Update* update) override {
    if (!CanSumAndApply(step))
      return DeviceOps::SumAndApply(layout, frames, averaging, step, anchor, momentum, update);
    if (absl::Status s = CheckSumInput(layout, frames); !s.ok()) return s;
    if (absl::Status s = CheckArrays(layout, step, {anchor.size(), momentum.size()}); !s.ok()) return s;
    SumAndApplyBlocks(layout, frames, averaging, step, options_, anchor, update);
    return absl::OkStatus();
  }

  absl::Status ApplyOutcome(const Layout& layout, const Update& update, const OuterStep& step,
                            const OwnFrame& own, absl::Span<float> anchor, absl::Span<float> momentum,
                            absl::Span<float> parameters) override {
    if (absl::Status s = CheckUpdate(layout, update, step, {anchor.size(), momentum.size()}); !s.ok())
      return s;
    if (absl::Status s = CheckOwnFrame(layout, own, parameters.size()); !s.ok()) return s;
    MoveAll(layout, update, step, own, {anchor.data(), momentum.data(), parameters.data()});
    return absl::OkStatus();
  }

  absl::Status MoveToAnchor(const Layout& layout, absl::Span<const float> new_anchor, const OwnFrame& own,
                            absl::Span<float> anchor, absl::Span<float> parameters) override {
    const size_t total = static_cast<size_t>(layout.total());
    if (new_anchor.size() != total || anchor.size() != total) {
      return absl::InvalidArgumentError("apply: anchor and new anchor do not fit the layout");
    }
    if (absl::Status s = CheckOwnFrame(layout, own, parameters.size()); !s.ok()) return s;
    const PlainFloatScope plain;
    for (int t = 0; t < layout.tensors(); ++t) {
      const DecodedTensor* tensor = OwnTensor(own, t);
      const bool sparse = tensor != nullptr && tensor->form == TensorForm::kSparse;
      size_t next = 0;
      for (int64_t i = 0; i < layout.size(t); ++i) {
        const int64_t at = layout.offset(t) + i;
        const bool sent =
            sparse ? next < tensor->positions.size() && tensor->positions[next] == i : tensor != nullptr;
        if (!sent && SameBits(new_anchor[at], anchor[at])) continue;
        const float own_value =
            sent ? DecodedValue(tensor->mantissas[sparse ? next++ : static_cast<size_t>(i)], tensor->exponent)
                 : 0.0f;
        const float carried = anchor[at] - parameters[at];
        const float left = carried - own_value;
        parameters[at] = new_anchor[at] - left;
        anchor[at] = new_anchor[at];
      }
    }
    return absl::OkStatus();
  }

 private:
  const SumOptions options_;
};

}  // namespace

std::unique_ptr<DeviceOps> MakeCpuDeviceOps() { return MakeCpuDeviceOpsWith(SumOptions()); }

std::unique_ptr<DeviceOps> MakeCpuDeviceOpsWith(const SumOptions& options) {
  return std::make_unique<CpuDeviceOps>(options);
}

}  // namespace isthmus
