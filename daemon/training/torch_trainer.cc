#include "daemon/training/torch_trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/random.h"
#include "daemon/base/status.h"
#include "daemon/training/batch.h"
#include "daemon/training/llama_kernels.h"
#include "daemon/training/torch_network.h"

namespace isthmus {
namespace {

absl::Status CheckOptimizer(const InnerOptimizerOptions& o) {
  const bool betas = o.beta1 >= 0 && o.beta1 < 1 && o.beta2 >= 0 && o.beta2 < 1;
  const bool others = o.epsilon > 0 && o.weight_decay >= 0 && o.clip_norm >= 0;
  if (betas && others && std::isfinite(o.epsilon + o.weight_decay + o.clip_norm)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("inner optimizer: beta1 ", o.beta1, ", beta2 ", o.beta2,
                                                 ", epsilon ", o.epsilon, ", weight_decay ", o.weight_decay,
                                                 ", clip_norm ", o.clip_norm, " are out of range"));
}

// Index drawn from softmax(logits / temperature); the most likely one when the temperature is 0.
int32_t Draw(const std::vector<float>& logits, double temperature, Random* random) {
  const auto most = std::max_element(logits.begin(), logits.end());
  if (temperature == 0) return static_cast<int32_t>(most - logits.begin());
  std::vector<double> weights;
  double sum = 0;
  for (float v : logits) {
    weights.push_back(std::exp((static_cast<double>(v) - *most) / temperature));
    sum += weights.back();
  }
  double left = random->Uniform() * sum;
  for (size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return static_cast<int32_t>(i);
  }
  return static_cast<int32_t>(most - logits.begin());
}

}  // namespace

absl::StatusOr<std::unique_ptr<TorchTrainer>> TorchTrainer::Create(const ModelShape& shape,
                                                                   const InnerOptimizerOptions& optimizer,
                                                                   const TorchOptions& options,
                                                                   absl::Span<const float> initial) {
  ISTHMUS_RETURN_IF_ERROR(CheckOptimizer(optimizer));
  ISTHMUS_ASSIGN_OR_RETURN(auto network, TorchNetwork::Create(shape, options.threads));
  const int64_t n = network->table().layout().total();
  if (static_cast<int64_t>(initial.size()) != n) {
    return absl::InvalidArgumentError(
        absl::StrCat("trainer: ", initial.size(), " initial values, the model has ", n));
  }
  std::unique_ptr<TorchTrainer> t(new TorchTrainer());
  t->network_ = std::move(network);
  t->optimizer_ = optimizer;
  t->parameters_.assign(initial.begin(), initial.end());
  t->gradient_.resize(n);
  t->first_.resize(n);
  t->second_.resize(n);
  return t;
}

TorchTrainer::TorchTrainer() = default;
TorchTrainer::~TorchTrainer() = default;

absl::StatusOr<double> TorchTrainer::FillGradient(const Batch& batch) {
  ISTHMUS_RETURN_IF_ERROR(CheckBatchTokens(batch, network_->shape().vocabulary));
  ISTHMUS_ASSIGN_OR_RETURN(const double sum,
                           network_->LossAndGradient(parameters_.data(), batch, gradient_.data()));
  const double loss = sum / static_cast<double>(batch.sequences * batch.length);
  if (!std::isfinite(loss)) return absl::DataLossError(absl::StrCat("step: loss is ", loss));
  return loss;
}

absl::StatusOr<StepResult> TorchTrainer::Step(const Batch& batch, double rate) {
  ISTHMUS_ASSIGN_OR_RETURN(const double loss, FillGradient(batch));
  const double norm = std::sqrt(SquaredNorm(gradient_.data(), gradient_.size()));
  if (!std::isfinite(norm)) return absl::DataLossError(absl::StrCat("step: gradient norm is ", norm));
  ++steps_;
  AdamWStepNumbers numbers;
  const double clip = optimizer_.clip_norm;
  numbers.gradient_scale = clip > 0 ? static_cast<float>(std::min(1.0, clip / (norm + 1e-6))) : 1.0f;
  numbers.rate = static_cast<float>(rate);
  numbers.beta1 = static_cast<float>(optimizer_.beta1);
  numbers.beta2 = static_cast<float>(optimizer_.beta2);
  numbers.epsilon = static_cast<float>(optimizer_.epsilon);
  numbers.correction1 = static_cast<float>(1 - std::pow(optimizer_.beta1, static_cast<double>(steps_)));
  numbers.correction2 = static_cast<float>(1 - std::pow(optimizer_.beta2, static_cast<double>(steps_)));
  const TensorTable& table = network_->table();
  for (int t = 0; t < table.layout().tensors(); ++t) {
    const int64_t at = table.layout().offset(t);
    numbers.decay = table.tensors()[t].is_decayed ? static_cast<float>(optimizer_.weight_decay) : 0.0f;
    AdamWStep(numbers, gradient_.data() + at, table.layout().size(t), parameters_.data() + at,
              first_.data() + at, second_.data() + at);
  }
  return StepResult{loss, norm, batch.sequences * batch.length};
}

absl::StatusOr<double> TorchTrainer::Evaluate(absl::Span<const float> parameters, const Batch& batch) {
  ISTHMUS_RETURN_IF_ERROR(CheckBatchTokens(batch, network_->shape().vocabulary));
  ISTHMUS_RETURN_IF_ERROR(CheckSize("evaluate", parameters));
  ISTHMUS_ASSIGN_OR_RETURN(const double sum, network_->Loss(parameters.data(), batch));
  if (!std::isfinite(sum)) return absl::DataLossError(absl::StrCat("evaluate: loss is ", sum));
  return sum / static_cast<double>(batch.sequences * batch.length);
}

void TorchTrainer::ResetMoments() {
  steps_ = 0;
  std::fill(first_.begin(), first_.end(), 0.0f);
  std::fill(second_.begin(), second_.end(), 0.0f);
}

InnerMoments TorchTrainer::ExportMoments() const {
  if (steps_ == 0) return {};
  return {steps_, first_, second_};
}

absl::Status TorchTrainer::ImportMoments(const InnerMoments& moments) {
  ISTHMUS_RETURN_IF_ERROR(CheckMoments(moments, static_cast<int64_t>(parameters_.size())));
  if (moments.first.empty()) {
    ResetMoments();
    return absl::OkStatus();
  }
  steps_ = moments.steps;
  first_ = moments.first;
  second_ = moments.second;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>> TorchTrainer::Sample(absl::Span<const float> parameters,
                                                          absl::Span<const int32_t> prompt, int64_t count,
                                                          double temperature, uint64_t seed) {
  ISTHMUS_RETURN_IF_ERROR(CheckSampleRequest(prompt, count, temperature, network_->shape().vocabulary));
  ISTHMUS_RETURN_IF_ERROR(CheckSize("sample", parameters));
  std::vector<int32_t> tokens(prompt.begin(), prompt.end());
  Random random(seed);
  for (int64_t i = 0; i < count; ++i) {
    const size_t seen = std::min<size_t>(tokens.size(), network_->shape().context);
    const auto window = absl::MakeConstSpan(tokens).last(seen);
    ISTHMUS_ASSIGN_OR_RETURN(const std::vector<float> logits,
                             network_->NextLogits(parameters.data(), window));
    for (float v : logits) {
      if (!std::isfinite(v)) return absl::DataLossError("sample: a logit is not finite");
    }
    tokens.push_back(Draw(logits, temperature, &random));
  }
  return std::vector<int32_t>(tokens.begin() + prompt.size(), tokens.end());
}

absl::StatusOr<std::vector<float>> TorchTrainer::Gradient(const Batch& batch) {
  ISTHMUS_RETURN_IF_ERROR(FillGradient(batch).status());
  return gradient_;
}

absl::Status TorchTrainer::CheckSize(const char* what, absl::Span<const float> parameters) const {
  if (parameters.size() == parameters_.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": ", parameters.size(), " values, the model has ", parameters_.size()));
}

}  // namespace isthmus
