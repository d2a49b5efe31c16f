#include "daemon/worker/replica.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"

namespace isthmus {
namespace {

// Calls fn(flat position, decoded value) for every value of a frame in the tensors `own` includes.
template <typename Fn>
void ForEachDecoded(const Layout& layout, const OwnFrame& own, Fn fn) {
  if (own.frame == nullptr) return;
  for (int t = 0; t < layout.tensors(); ++t) {
    if (!own.included.empty() && !own.included[t]) continue;
    const DecodedTensor& d = own.frame->tensors[t];
    for (size_t i = 0; i < d.mantissas.size(); ++i) {
      const int64_t at = d.form == TensorForm::kDense ? static_cast<int64_t>(i) : d.positions[i];
      fn(layout.offset(t) + at, DecodedValue(d.mantissas[i], d.exponent));
    }
  }
}

double FiniteSquareSum(absl::Span<const float> values) {
  double sum = 0;
  for (float v : values) {
    if (std::isfinite(v)) sum += static_cast<double>(v) * v;
  }
  return sum;
}

}  // namespace

Replica::Replica(Parts parts, DeviceOps* ops, FeedbackForm form)
    : parts_(std::move(parts)), feedback_(MakeErrorFeedback(form, ops)) {}

Digest Replica::AnchorDigest() const { return parts_.table.StateDigestOf(stamp_, anchor_, momentum_); }

absl::Status Replica::CheckSizes(absl::Span<const float> anchor, absl::Span<const float> momentum) const {
  const int64_t total = parts_.table.layout().total();
  if (static_cast<int64_t>(anchor.size()) != total ||
      (!momentum.empty() && static_cast<int64_t>(momentum.size()) != total)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a snapshot of ", anchor.size(), " values does not fit a model of ", total));
  }
  return absl::OkStatus();
}

absl::Status Replica::Begin(const StateStamp& stamp, std::vector<float> anchor, std::vector<float> momentum) {
  ISTHMUS_RETURN_IF_ERROR(CheckSizes(anchor, momentum));
  stamp_ = stamp;
  anchor_ = std::move(anchor);
  momentum_ = std::move(momentum);
  std::copy(anchor_.begin(), anchor_.end(), parameters().begin());
  feedback_->Clear(parts_.table.layout().total());
  return absl::OkStatus();
}

absl::Status Replica::MoveTo(const StateStamp& stamp, std::vector<float> anchor, std::vector<float> momentum,
                             const OwnFrame& own) {
  ISTHMUS_RETURN_IF_ERROR(CheckSizes(anchor, momentum));
  ISTHMUS_RETURN_IF_ERROR(feedback_->MoveTo(anchor, own, Arrays()));
  stamp_ = stamp;
  momentum_ = std::move(momentum);
  return absl::OkStatus();
}

absl::StatusOr<double> Replica::Resync(const StateStamp& stamp, std::vector<float> anchor,
                                       std::vector<float> momentum, const OwnFrame& pending) {
  ISTHMUS_RETURN_IF_ERROR(CheckSizes(anchor, momentum));
  const double forfeited = Forfeit(Carried(pending));
  ISTHMUS_RETURN_IF_ERROR(Begin(stamp, std::move(anchor), std::move(momentum)));
  return forfeited;
}

double Replica::Reset(const DecodedFrame* pending) {
  OwnFrame own;
  own.frame = pending;
  const double forfeited = Forfeit(Carried(own));
  std::copy(anchor_.begin(), anchor_.end(), parameters().begin());
  feedback_->Clear(parts_.table.layout().total());
  parts_.trainer->ResetMoments();
  return forfeited;
}

double Replica::Forfeit(absl::Span<const float> values) {
  if (is_traced_) {
    forfeited_.resize(anchor_.size(), 0.0);
    for (size_t i = 0; i < values.size(); ++i) forfeited_[i] += values[i];
  }
  return FiniteSquareSum(values);
}

double Replica::CarriedSquareSum(const DecodedFrame* pending) const {
  OwnFrame own;
  own.frame = pending;
  return FiniteSquareSum(Carried(own));
}

double Replica::ForfeitFrame(const OwnFrame& lost) {
  const Layout& layout = parts_.table.layout();
  double sum = 0;
  if (is_traced_) forfeited_.resize(layout.total(), 0.0);
  ForEachDecoded(layout, lost, [&](int64_t at, float value) {
    sum += static_cast<double>(value) * value;
    if (is_traced_) forfeited_[at] += value;
  });
  return sum;
}

absl::StatusOr<StepResult> Replica::Step(absl::Span<const int64_t> sequences, double rate) {
  ISTHMUS_ASSIGN_OR_RETURN(const Batch batch, parts_.data->TrainingBatch(sequences));
  return parts_.trainer->Step(batch, rate);
}

absl::StatusOr<EncodedFrame> Replica::Encode(const Codec& codec, double carry_decay,
                                             double* decay_forfeited) {
  *decay_forfeited = 0;
  EncodedFrame out;
  out.base_digest = AnchorDigest();
  ErrorFeedback::Decayed decayed;
  if (is_traced_) decayed.trace = &forfeited_;
  absl::StatusOr<std::string> bytes =
      feedback_->Encode(codec, static_cast<float>(carry_decay), Arrays(), &decayed);
  *decay_forfeited = decayed.square_sum;
  if (!bytes.ok()) return bytes.status();
  out.digest = DigestOf(absl::string_view(*bytes));
  ISTHMUS_ASSIGN_OR_RETURN(DecodedFrame decoded, codec.Decode(parts_.table.layout(), *bytes));
  out.bytes = std::make_shared<const std::string>(*std::move(bytes));
  out.decoded = std::make_shared<const DecodedFrame>(std::move(decoded));
  return out;
}

absl::StatusOr<Digest> Replica::Apply(const CommittedStep& step) {
  const Layout& layout = parts_.table.layout();
  ISTHMUS_RETURN_IF_ERROR(DecodeUpdate(layout, step.update, &update_scratch_, &update_));
  OwnFrame own;
  if (step.own_index >= 0 && step.own != nullptr) {
    own.frame = step.own;
    own.included.assign(layout.tensors(), true);
    for (int t = 0; t < layout.tensors(); ++t) {
      for (uint16_t index : update_.tensors[t].left_out) {
        if (index == step.own_index) own.included[t] = false;
      }
    }
  }
  if (step.outer.form == OuterForm::kNesterov && momentum_.empty()) momentum_.assign(anchor_.size(), 0.0f);
  ISTHMUS_RETURN_IF_ERROR(feedback_->Apply(update_, step.outer, own, absl::MakeSpan(momentum_), Arrays()));
  stamp_ = step.stamp;
  return AnchorDigest();
}

void Replica::FlipAnchorBit(int64_t position) {
  uint32_t bits;
  float& value = anchor_[position % anchor_.size()];
  std::memcpy(&bits, &value, sizeof(bits));
  bits ^= 1u;
  std::memcpy(&value, &bits, sizeof(bits));
}

}  // namespace isthmus
