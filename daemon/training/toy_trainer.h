// A trainer for tests and simulations: a quadratic bowl with a known optimum, cheap enough for thousands of
// sites in one process. Needs no engine.
//
// Every inner step moves each value by a multiple of 2^-12, and optima lie within ±0.5, so that sums and
// differences of parameters are exact in fp32 and the mass invariants can be checked bit for bit.
#ifndef ISTHMUS_DAEMON_TRAINING_TOY_TRAINER_H_
#define ISTHMUS_DAEMON_TRAINING_TOY_TRAINER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "daemon/training/trainer.h"

namespace isthmus {

struct ToyOptions {
  int64_t vocabulary = 256;
  uint64_t optimum_seed = 1;  // the same at all sites
  // A site whose data differ pulls towards another optimum: every coordinate shifted by at most this much,
  // rounded to 2^-6; the mean over many sites is the common one.
  double site_shift = 0;
  uint64_t site_seed = 0;
  // Largest size of the noise a batch adds to a gradient's coordinate; the batch's tokens fix it.
  double noise = 0.25;
};

// A table that fits: two tensors, `values` in all (at least 2), zeros at the start.
TensorTable ToyTensorTable(int64_t values);

// Gradient: parameters − site's optimum + noise of the batch. Step: parameters −= rate · gradient (clipped to
// norm `sqrt(values)`), rounded to 2^-12. Loss: half the mean square distance from the common optimum.
class ToyTrainer : public Trainer {
 public:
  // `initial` is table.layout().total() long. INVALID_ARGUMENT for other sizes or impossible options.
  static absl::StatusOr<std::unique_ptr<ToyTrainer>> Create(const TensorTable& table,
                                                            const ToyOptions& options,
                                                            absl::Span<const float> initial);

  absl::Span<float> parameters() override { return absl::MakeSpan(parameters_); }
  absl::StatusOr<StepResult> Step(const Batch& batch, double rate) override;
  absl::StatusOr<double> Evaluate(absl::Span<const float> parameters, const Batch& batch) override;
  void ResetMoments() override { steps_ = 0; }
  InnerMoments ExportMoments() const override;
  absl::Status ImportMoments(const InnerMoments& moments) override;
  absl::StatusOr<std::vector<int32_t>> Sample(absl::Span<const float> parameters,
                                              absl::Span<const int32_t> prompt, int64_t count,
                                              double temperature, uint64_t seed) override;

  // Where all sites together should end; multiples of 2^-6.
  const std::vector<float>& optimum() const { return optimum_; }

  // Everything the inner steps did since creation, in the sign of a pseudo-gradient: Σ (before − after),
  // flat, exact. `is_exact` is false once a step's fp32 sum had to round (parameters off the grid).
  const std::vector<double>& inner_sum() const { return inner_sum_; }
  bool is_exact() const { return is_exact_; }

 private:
  ToyTrainer() = default;
  absl::Status CheckBatch(const Batch& batch) const;

  ToyOptions options_;
  std::vector<float> parameters_, optimum_, site_optimum_;
  std::vector<double> inner_sum_;
  std::vector<double> gradient_;  // of the present step; kept for its memory
  int64_t steps_ = 0;
  bool is_exact_ = true;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_TOY_TRAINER_H_
