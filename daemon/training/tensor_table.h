// The model as a list of tensors: names, shapes, order, initial values. Needs no libtorch, so that the
// coordinator and the trainer agree on it.
#ifndef ISTHMUS_DAEMON_TRAINING_TENSOR_TABLE_H_
#define ISTHMUS_DAEMON_TRAINING_TENSOR_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/layout.h"
#include "daemon/base/digest.h"

namespace isthmus {

// A decoder-only transformer in Llama's form: RMSNorm, rotary positions, SwiGLU, grouped key/value heads.
struct ModelShape {
  int64_t vocabulary = 256;
  int64_t width = 128;
  int64_t layers = 4;
  int64_t heads = 4;
  int64_t kv_heads = 4;  // divides heads
  int64_t feed_forward = 344;
  int64_t context = 128;     // tokens a sequence trains on
  bool is_head_tied = true;  // output head shares the embedding table
  double rotary_base = 10000;
};

enum class TensorInit : uint8_t { kZeros, kOnes, kNormal };

struct TensorInfo {
  std::string name;  // Hugging Face's Llama names, e.g. "model.layers.0.self_attn.q_proj.weight"
  std::vector<int64_t> shape;
  TensorInit init = TensorInit::kNormal;
  double deviation = 0;     // of kNormal
  bool is_decayed = false;  // weight decay applies (matrices only)
  int64_t values() const;
  // Values that share the first index; 0 unless there are further ones.
  int64_t row_length() const;
};

// Immutable once built.
class TensorTable {
 public:
  // INVALID_ARGUMENT naming the field: sizes not positive, heads not divisible, odd head width.
  static absl::StatusOr<TensorTable> ForModel(const ModelShape& shape);
  // Any list of tensors (toy problem, tests). INVALID_ARGUMENT for empty or repeated names or shapes.
  static absl::StatusOr<TensorTable> FromTensors(std::vector<TensorInfo> tensors);

  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  // The flat layout with its 64-bit digest over names, shapes and order.
  const Layout& layout() const { return layout_; }

  // Snapshot 0: the same numbers on every machine (integer generator, RandomAt; the normal values as sums of
  // uniform integers, no transcendental function).
  std::vector<float> InitialValues(uint64_t seed) const;

  // The state digest (daemon/base/digest.h) of values laid out by this table.
  Digest StateDigestOf(const StateStamp& stamp, absl::Span<const float> values,
                       absl::Span<const float> momentum) const;

 private:
  std::vector<TensorInfo> tensors_;
  Layout layout_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_TENSOR_TABLE_H_
