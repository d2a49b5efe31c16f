#include "daemon/training/torch_top_k.h"

#include <exception>

#include "absl/strings/str_cat.h"
#include "daemon/training/torch_compat.h"

namespace isthmus {
namespace {

constexpr int64_t kBlock = 4096;

at::Tensor Blocks(absl::Span<const float> values) {
  return at::from_blob(const_cast<float*>(values.data()),
                       {static_cast<int64_t>(values.size()) / kBlock, kBlock},
                       at::TensorOptions().dtype(at::kFloat));
}

}  // namespace

absl::StatusOr<TorchKept> TorchTopK(absl::Span<const float> anchor, absl::Span<const float> parameters,
                                    int64_t k) {
  if (anchor.size() != parameters.size() || anchor.size() % kBlock != 0 || k < 1 || k > kBlock) {
    return absl::InvalidArgumentError(
        absl::StrCat("top-k by libtorch: ", anchor.size(), " and ", parameters.size(), " values, k ", k));
  }
  try {
    SetTorchThreads(1);
    const c10::InferenceMode no_gradients;
    const at::Tensor difference = Blocks(anchor) - Blocks(parameters);
    const at::Tensor kept = std::get<1>(at::topk(difference.abs(), k, 1, true, false));
    const at::Tensor positions = std::get<0>(kept.sort(1));
    const at::Tensor values = difference.gather(1, positions);
    const size_t count = static_cast<size_t>(positions.numel());
    const int64_t* position = positions.data_ptr<int64_t>();
    const float* value = values.data_ptr<float>();
    return TorchKept{{position, position + count}, {value, value + count}};
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("top-k by libtorch: ", e.what()));
  }
}

}  // namespace isthmus
