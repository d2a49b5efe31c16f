#include "daemon/worker/error_feedback.h"

#include <algorithm>

#include "compression/float_mode.h"
#include "compression/residual.h"
#include "daemon/base/status.h"

namespace isthmus {
namespace {

void NoteDecayed(int64_t position, double lost, ErrorFeedback::Decayed* decayed) {
  decayed->square_sum += lost * lost;
  if (decayed->trace != nullptr) (*decayed->trace)[position] += lost;
}

class CarriedFeedback : public ErrorFeedback {
 public:
  explicit CarriedFeedback(DeviceOps* ops) : ops_(ops) {}

  void Clear(int64_t) override {}

  absl::StatusOr<std::string> Encode(const Codec& codec, float beta, const ReplicaArrays& arrays,
                                     Decayed* decayed) override {
    if (beta != 1) Decay(beta, arrays, decayed);
    return ops_->Encode(codec, arrays.layout, arrays.anchor, arrays.parameters);
  }

  absl::Status Apply(const Update& update, const OuterStep& step, const OwnFrame& own,
                     absl::Span<float> momentum, const ReplicaArrays& arrays) override {
    return ops_->ApplyOutcome(arrays.layout, update, step, own, arrays.anchor, momentum, arrays.parameters);
  }

  absl::Status MoveTo(absl::Span<const float> new_anchor, const OwnFrame& own,
                      const ReplicaArrays& arrays) override {
    return ops_->MoveToAnchor(arrays.layout, new_anchor, own, arrays.anchor, arrays.parameters);
  }

  void Return(const Layout&, const DecodedFrame&) override {}  // it never went

  std::vector<float> Carried(const Layout& layout, absl::Span<const float> anchor,
                             absl::Span<const float> parameters, const OwnFrame& pending) const override {
    std::vector<float> d(anchor.size());
    for (size_t i = 0; i < d.size(); ++i) d[i] = anchor[i] - parameters[i];
    if (pending.frame != nullptr)
      SubtractDecoded(layout, *pending.frame, pending.included, absl::MakeSpan(d));
    return d;
  }

  absl::Span<const float> residual() const override { return {}; }

 private:
  static void Decay(float beta, const ReplicaArrays& arrays, Decayed* decayed) {
    const PlainFloatScope plain;
    for (size_t i = 0; i < arrays.anchor.size(); ++i) {
      float* p = &arrays.parameters[i];
      const float d = arrays.anchor[i] - *p;
      const float kept = beta * d;
      *p = arrays.anchor[i] - kept;
      const float lost = d - (arrays.anchor[i] - *p);
      NoteDecayed(static_cast<int64_t>(i), lost, decayed);
    }
  }

  DeviceOps* const ops_;
};

class SeparateFeedback : public ErrorFeedback {
 public:
  explicit SeparateFeedback(DeviceOps* ops) : ops_(ops) {}

  void Clear(int64_t values) override { residual_.assign(static_cast<size_t>(values), 0.0f); }

  absl::StatusOr<std::string> Encode(const Codec& codec, float beta, const ReplicaArrays& arrays,
                                     Decayed* decayed) override {
    spare_.resize(residual_.size());
    ISTHMUS_ASSIGN_OR_RETURN(std::string frame,
                             ops_->EncodeResidualTo(codec, arrays.layout, arrays.anchor, arrays.parameters,
                                                    beta, residual_, absl::MakeSpan(spare_)));
    residual_.swap(spare_);
    const PlainFloatScope plain;
    for (size_t i = 0; beta != 1 && i < spare_.size(); ++i) {
      const float kept = beta * spare_[i];
      NoteDecayed(static_cast<int64_t>(i), static_cast<double>(spare_[i]) - kept, decayed);
    }
    std::copy(arrays.anchor.begin(), arrays.anchor.end(), arrays.parameters.begin());
    return frame;
  }

  absl::Status Apply(const Update& update, const OuterStep& step, const OwnFrame& own,
                     absl::Span<float> momentum, const ReplicaArrays& arrays) override {
    ISTHMUS_RETURN_IF_ERROR(ops_->ApplyOutcome(arrays.layout, update, step, OwnFrame(), arrays.anchor,
                                               momentum, arrays.parameters));
    ReturnLeftOut(arrays.layout, own);
    return absl::OkStatus();
  }

  absl::Status MoveTo(absl::Span<const float> new_anchor, const OwnFrame& own,
                      const ReplicaArrays& arrays) override {
    ISTHMUS_RETURN_IF_ERROR(
        ops_->MoveToAnchor(arrays.layout, new_anchor, OwnFrame(), arrays.anchor, arrays.parameters));
    ReturnLeftOut(arrays.layout, own);
    return absl::OkStatus();
  }

  void Return(const Layout& layout, const DecodedFrame& frame) override {
    AddDecoded(layout, frame, {}, absl::MakeSpan(residual_));
  }

  std::vector<float> Carried(const Layout& layout, absl::Span<const float> anchor,
                             absl::Span<const float> parameters, const OwnFrame& pending) const override {
    std::vector<float> d(anchor.size());
    for (size_t i = 0; i < d.size(); ++i) {
      const float difference = anchor[i] - parameters[i];
      d[i] = residual_[i] + difference;
    }
    // Where it does not count, it would have come back.
    if (pending.frame != nullptr && !pending.included.empty()) {
      std::vector<bool> left_out = pending.included;
      left_out.flip();
      AddDecoded(layout, *pending.frame, left_out, absl::MakeSpan(d));
    }
    return d;
  }

  absl::Span<const float> residual() const override { return residual_; }

 private:
  void ReturnLeftOut(const Layout& layout, const OwnFrame& own) {
    if (own.frame == nullptr || own.included.empty()) return;
    std::vector<bool> left_out = own.included;
    left_out.flip();
    AddDecoded(layout, *own.frame, left_out, absl::MakeSpan(residual_));
  }

  DeviceOps* const ops_;
  std::vector<float> residual_, spare_;  // the next frame's residual is written beside the present one
};

}  // namespace

std::unique_ptr<ErrorFeedback> MakeErrorFeedback(FeedbackForm form, DeviceOps* ops) {
  if (form == FeedbackForm::kSeparate) return std::make_unique<SeparateFeedback>(ops);
  return std::make_unique<CarriedFeedback>(ops);
}

}  // namespace isthmus
