#include "daemon/training/toy_trainer.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "daemon/base/random.h"
#include "daemon/base/status.h"
#include "daemon/training/batch.h"

namespace isthmus {
namespace {

constexpr double kGrid = 0x1p-12;  // what a step moves a value by is a multiple of this
constexpr double kOptimumGrid = 0x1p-6;
constexpr uint64_t kOptimumStream = 1, kShiftStream = 2, kNoiseStream = 3, kSampleStream = 4;

double OnGrid(double v, double grid) { return std::nearbyint(v / grid) * grid; }

// Uniform in [-1, 1] on 2^-15 from bits 16·part … of `bits`.
double Signed16(uint64_t bits, int part) {
  return static_cast<double>(static_cast<int16_t>(bits >> (16 * part))) * 0x1p-15;
}

uint64_t SeedOf(const Batch& batch) {
  uint64_t h = Mix64(batch.sequences);
  for (int32_t token : batch.tokens) h = Mix64(h ^ static_cast<uint32_t>(token));
  return h;
}

}  // namespace

TensorTable ToyTensorTable(int64_t values) {
  const int64_t first = std::max<int64_t>(1, values / 3);
  const int64_t second = std::max<int64_t>(1, values - first);
  return TensorTable::FromTensors(
             {{"toy.first", {first}, TensorInit::kZeros}, {"toy.second", {second}, TensorInit::kZeros}})
      .value();
}

absl::StatusOr<std::unique_ptr<ToyTrainer>> ToyTrainer::Create(const TensorTable& table,
                                                               const ToyOptions& options,
                                                               absl::Span<const float> initial) {
  const int64_t n = table.layout().total();
  if (static_cast<int64_t>(initial.size()) != n) {
    return absl::InvalidArgumentError(
        absl::StrCat("toy trainer: ", initial.size(), " initial values, the table has ", n));
  }
  if (options.vocabulary < 1) return absl::InvalidArgumentError("toy trainer: vocabulary below 1");
  if (!(options.noise >= 0 && options.noise <= 1 && options.site_shift >= 0 && options.site_shift <= 1)) {
    return absl::InvalidArgumentError("toy trainer: noise and site_shift must lie within 0 and 1");
  }
  std::unique_ptr<ToyTrainer> t(new ToyTrainer());
  t->options_ = options;
  t->parameters_.assign(initial.begin(), initial.end());
  t->optimum_.resize(n);
  t->site_optimum_.resize(n);
  t->inner_sum_.assign(n, 0.0);
  t->gradient_.resize(n);
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t bits = RandomAt(options.optimum_seed, kOptimumStream, i);
    t->optimum_[i] = static_cast<float>(OnGrid(0.5 * Signed16(bits, 0), kOptimumGrid));
    const double shift = Signed16(RandomAt(options.site_seed, kShiftStream, i), 0) * options.site_shift;
    t->site_optimum_[i] = t->optimum_[i] + static_cast<float>(OnGrid(shift, kOptimumGrid));
  }
  return t;
}

absl::Status ToyTrainer::CheckBatch(const Batch& batch) const {
  return CheckBatchTokens(batch, options_.vocabulary);
}

absl::StatusOr<StepResult> ToyTrainer::Step(const Batch& batch, double rate) {
  ISTHMUS_RETURN_IF_ERROR(CheckBatch(batch));
  const int64_t n = parameters_.size();
  const uint64_t seed = SeedOf(batch);
  double squares = 0, distance = 0;
  uint64_t bits = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (i % 4 == 0) bits = RandomAt(seed, kNoiseStream, i / 4);
    const double from_common = static_cast<double>(parameters_[i]) - optimum_[i];
    distance += from_common * from_common;
    gradient_[i] =
        static_cast<double>(parameters_[i]) - site_optimum_[i] + options_.noise * Signed16(bits, i % 4);
    squares += gradient_[i] * gradient_[i];
  }
  if (!std::isfinite(squares) || !std::isfinite(distance)) {
    return absl::DataLossError("toy trainer: loss or gradient is not finite");
  }
  const double norm = std::sqrt(squares);
  const double most = std::sqrt(static_cast<double>(n));
  const double scale = norm > most ? most / norm : 1.0;
  for (int64_t i = 0; i < n; ++i) {
    const float move = static_cast<float>(OnGrid(rate * scale * gradient_[i], kGrid));
    const float before = parameters_[i];
    const float after = before - move;
    const double moved = static_cast<double>(before) - after;
    is_exact_ = is_exact_ && moved == move;
    inner_sum_[i] += moved;
    parameters_[i] = after;
  }
  ++steps_;
  return StepResult{0.5 * distance / n, norm, batch.sequences * batch.length};
}

absl::StatusOr<double> ToyTrainer::Evaluate(absl::Span<const float> parameters, const Batch& batch) {
  ISTHMUS_RETURN_IF_ERROR(CheckBatch(batch));
  if (parameters.size() != optimum_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("evaluate: ", parameters.size(), " values, the table has ", optimum_.size()));
  }
  double distance = 0;
  for (size_t i = 0; i < optimum_.size(); ++i) {
    const double d = static_cast<double>(parameters[i]) - optimum_[i];
    distance += d * d;
  }
  if (!std::isfinite(distance)) return absl::DataLossError("toy trainer: loss is not finite");
  return 0.5 * distance / optimum_.size();
}

// The bowl has no moments but counts its steps, so that a test can see them kept, reset and carried over.
InnerMoments ToyTrainer::ExportMoments() const {
  InnerMoments m;
  m.steps = steps_;
  if (steps_ > 0) {
    m.first.assign(parameters_.size(), 0.0f);
    m.second.assign(parameters_.size(), 0.0f);
  }
  return m;
}

absl::Status ToyTrainer::ImportMoments(const InnerMoments& moments) {
  ISTHMUS_RETURN_IF_ERROR(CheckMoments(moments, parameters_.size()));
  steps_ = moments.steps;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>> ToyTrainer::Sample(absl::Span<const float> parameters,
                                                        absl::Span<const int32_t> prompt, int64_t count,
                                                        double temperature, uint64_t seed) {
  ISTHMUS_RETURN_IF_ERROR(CheckSampleRequest(prompt, count, temperature, options_.vocabulary));
  if (parameters.size() != optimum_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("sample: ", parameters.size(), " values, the table has ", optimum_.size()));
  }
  std::vector<int32_t> out(count);
  Random random(seed, kSampleStream);
  for (int32_t& token : out) token = static_cast<int32_t>(random.Below(options_.vocabulary));
  return out;
}

}  // namespace isthmus
