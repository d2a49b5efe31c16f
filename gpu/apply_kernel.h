// Apply, value by value, as one body that host and device compilers both take: the same operations in the
// same order give the same bits (ROUNDS §8). No library may be needed here: nvcc compiles it alone.
#ifndef ISTHMUS_GPU_APPLY_KERNEL_H_
#define ISTHMUS_GPU_APPLY_KERNEL_H_

#include <cstdint>

#if defined(__CUDACC__)
#define ISTHMUS_HOST_DEVICE __host__ __device__
#else
#define ISTHMUS_HOST_DEVICE
#endif

namespace isthmus {

// One tensor's apply: `count` touched values. Pointers are to host or device memory, wherever the body runs.
struct ApplyTensorArgs {
  int64_t count = 0;
  const uint32_t* positions = nullptr;  // of each touched value, distinct; null: value i is position i
  const int64_t* sums = nullptr;        // aligned; null: the update has nothing
  const int32_t* weights = nullptr;     // aligned, 0 where no site sent; null: total_weight for all
  const int32_t* own = nullptr;         // mantissas of the own frame, aligned, 0 where none; null: none
  double scale = 0;                     // 2^E_min
  double total_weight = 1;
  double own_scale = 0;  // 2^E of the own frame's tensor
  float rate = 1;
  float momentum_rate = 0;
  float* anchor = nullptr;      // the tensor's values
  float* momentum = nullptr;    // null: plain form
  float* parameters = nullptr;  // null: only the anchor moves
};

// Moves touched value `i`. Build with contraction off (-ffp-contract=off, -fmad=false) and without
// flush-to-zero.
ISTHMUS_HOST_DEVICE inline void ApplyValue(const ApplyTensorArgs& args, int64_t i) {
  const int64_t at = args.positions == nullptr ? i : static_cast<int64_t>(args.positions[i]);
  const double weight = args.weights == nullptr ? args.total_weight : static_cast<double>(args.weights[i]);
  float u = 0;
  // The product is exact: a sum has at most 52 bits and the scale is a power of two far from double's ends.
  if (args.sums != nullptr && weight != 0)
    u = static_cast<float>(static_cast<double>(args.sums[i]) * args.scale / weight);
  const float old_anchor = args.anchor[at];
  float direction = u;
  if (args.momentum != nullptr) {
    const float m = args.momentum_rate * args.momentum[at] + u;
    args.momentum[at] = m;
    direction = u + args.momentum_rate * m;
  }
  const float new_anchor = old_anchor - args.rate * direction;
  args.anchor[at] = new_anchor;
  if (args.parameters == nullptr) return;
  const float own =
      args.own == nullptr ? 0.0f : static_cast<float>(static_cast<double>(args.own[i]) * args.own_scale);
  args.parameters[at] = new_anchor - ((old_anchor - args.parameters[at]) - own);
}

// The host twin of the kernel: all touched values, one after another.
inline void ApplyTensorOnHost(const ApplyTensorArgs& args) {
  for (int64_t i = 0; i < args.count; ++i) ApplyValue(args, i);
}

}  // namespace isthmus

#endif  // ISTHMUS_GPU_APPLY_KERNEL_H_
