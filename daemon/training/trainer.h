// The Trainer seam: one replica of the model that can take inner steps.
#ifndef ISTHMUS_DAEMON_TRAINING_TRAINER_H_
#define ISTHMUS_DAEMON_TRAINING_TRAINER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/training/tensor_table.h"

namespace isthmus {

// `sequences` rows of `length` + 1 tokens: inputs are the first `length`, targets the last `length`.
struct Batch {
  int64_t sequences = 0;
  int64_t length = 0;
  std::vector<int32_t> tokens;
};

// AdamW as decided in ROUNDS §10.
struct InnerOptimizerOptions {
  double beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8;
  double weight_decay = 0.1;  // matrices only
  double clip_norm = 1.0;     // global gradient norm; 0 turns clipping off
};

struct StepResult {
  double loss = 0;           // mean nats per token of the batch, before the step
  double gradient_norm = 0;  // before clipping
  int64_t tokens = 0;
};

// The inner optimizer's memory, for a worker that outlives its process (ROUNDS §9).
struct InnerMoments {
  int64_t steps = 0;
  std::vector<float> first, second;  // flat in TensorTable order; both empty when no step was taken
};

// Not thread-safe: used by one task at a time (TaskRunner).
class Trainer {
 public:
  virtual ~Trainer() = default;

  // The live parameters, flat in TensorTable order; writable between calls (outcomes are applied in place).
  virtual absl::Span<float> parameters() = 0;

  // One inner step at learning rate `rate`. INVALID_ARGUMENT: token beyond the vocabulary, wrong shape;
  // INTERNAL: the engine failed. A NaN or Inf loss or gradient gives DATA_LOSS and leaves moments untouched.
  virtual absl::StatusOr<StepResult> Step(const Batch& batch, double rate) = 0;

  // Mean nats per token of `batch` under `parameters` (flat), without touching the live ones.
  virtual absl::StatusOr<double> Evaluate(absl::Span<const float> parameters, const Batch& batch) = 0;

  // Forgets the inner optimizer's moments and step count.
  virtual void ResetMoments() = 0;

  // A copy of the moments; importing it into a trainer of the same table goes on as if nothing had happened.
  // INVALID_ARGUMENT when the sizes are not the table's or a value is not finite; the old ones stay then.
  virtual InnerMoments ExportMoments() const = 0;
  virtual absl::Status ImportMoments(const InnerMoments& moments) = 0;

  // `count` more tokens after `prompt` (not empty), drawn at `temperature` from `parameters`; `seed` fixes
  // the draw.
  virtual absl::StatusOr<std::vector<int32_t>> Sample(absl::Span<const float> parameters,
                                                      absl::Span<const int32_t> prompt, int64_t count,
                                                      double temperature, uint64_t seed) = 0;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_TRAINER_H_
