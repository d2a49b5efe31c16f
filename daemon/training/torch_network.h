// Loss and gradient of a Llama-form transformer over flat fp32 arrays in TensorTable order.
//
// Matrix products by libtorch (not in this header), the rest by llama_kernels.h. The backward pass is written
// by hand; buffers are made once per batch shape. Not thread-safe.
#ifndef ISTHMUS_DAEMON_TRAINING_TORCH_NETWORK_H_
#define ISTHMUS_DAEMON_TRAINING_TORCH_NETWORK_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/training/tensor_table.h"
#include "daemon/training/trainer.h"

namespace isthmus {

// All calls take `parameters` (and `gradient`) as long as the table's layout; the caller has checked that and
// the tokens. INVALID_ARGUMENT: a batch longer than the context. INTERNAL: the engine failed.
class TorchNetwork {
 public:
  // `threads` is the matrix library's count in this process (a global setting of it).
  static absl::StatusOr<std::unique_ptr<TorchNetwork>> Create(const ModelShape& shape, int threads);
  ~TorchNetwork();

  const ModelShape& shape() const;
  const TensorTable& table() const;

  // Sum of nats over the batch's tokens.
  absl::StatusOr<double> Loss(const float* parameters, const Batch& batch);

  // The same, and overwrites `gradient` with that of the mean over the tokens.
  absl::StatusOr<double> LossAndGradient(const float* parameters, const Batch& batch, float* gradient);

  // Logits after the last of `tokens` (1 … context of them), vocabulary long.
  absl::StatusOr<std::vector<float>> NextLogits(const float* parameters, absl::Span<const int32_t> tokens);

 private:
  class Impl;
  explicit TorchNetwork(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_TORCH_NETWORK_H_
