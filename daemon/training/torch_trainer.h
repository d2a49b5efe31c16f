// The real trainer: a Llama-form transformer and AdamW on the CPU, matrix products by libtorch.
//
// The backward pass is written by hand over buffers made once per batch shape; the parameters are one flat
// array in TensorTable order, and matrices are views into it. This header includes no libtorch.
#ifndef ISTHMUS_DAEMON_TRAINING_TORCH_TRAINER_H_
#define ISTHMUS_DAEMON_TRAINING_TORCH_TRAINER_H_

#include <memory>
#include <vector>

#include "daemon/training/trainer.h"

namespace isthmus {

class TorchNetwork;

struct TorchOptions {
  int threads = 1;  // of the whole process: the matrix library's setting is global
};

// Batches may have any count of sequences, at most ModelShape::context long.
class TorchTrainer : public Trainer {
 public:
  // `initial` is the flat start (TensorTable::InitialValues or a snapshot). INVALID_ARGUMENT for an
  // impossible shape, size or option; INTERNAL when the engine fails.
  static absl::StatusOr<std::unique_ptr<TorchTrainer>> Create(const ModelShape& shape,
                                                              const InnerOptimizerOptions& optimizer,
                                                              const TorchOptions& options,
                                                              absl::Span<const float> initial);
  ~TorchTrainer() override;

  absl::Span<float> parameters() override { return absl::MakeSpan(parameters_); }
  absl::StatusOr<StepResult> Step(const Batch& batch, double rate) override;
  absl::StatusOr<double> Evaluate(absl::Span<const float> parameters, const Batch& batch) override;
  void ResetMoments() override;
  InnerMoments ExportMoments() const override;
  absl::Status ImportMoments(const InnerMoments& moments) override;
  absl::StatusOr<std::vector<int32_t>> Sample(absl::Span<const float> parameters,
                                              absl::Span<const int32_t> prompt, int64_t count,
                                              double temperature, uint64_t seed) override;

  // Flat gradient of the mean loss of `batch` at the live parameters, before clipping; nothing moves. For
  // tests.
  absl::StatusOr<std::vector<float>> Gradient(const Batch& batch);

 private:
  TorchTrainer();
  // Mean loss of the batch; gradient_ holds its gradient.
  absl::StatusOr<double> FillGradient(const Batch& batch);
  absl::Status CheckSize(const char* what, absl::Span<const float> parameters) const;

  std::unique_ptr<TorchNetwork> network_;
  InnerOptimizerOptions optimizer_;
  std::vector<float> parameters_, gradient_, first_, second_;
  int64_t steps_ = 0;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_TORCH_TRAINER_H_
