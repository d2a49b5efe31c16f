#include "gpu/mean_values.h"

namespace isthmus {

void MeanValuesPortable(const MeanScale& scale, const int64_t* sums, const int32_t* weights, int count,
                        float* means) {
  for (int i = 0; i < count; ++i) {
    const double scaled = static_cast<double>(sums[i]) * scale.scale;
    if (weights == nullptr) {
      means[i] = static_cast<float>(scaled / scale.total_weight);
    } else {
      means[i] = weights[i] == 0 ? 0.0f : static_cast<float>(scaled / static_cast<double>(weights[i]));
    }
  }
}

MeanValuesFn MeanValuesOf(SimdPath path) {
  const bool fast = path == SimdPath::kAvx512 && HasSimdPath(path) && MeanValuesAvx512() != nullptr;
  return fast ? MeanValuesAvx512() : MeanValuesPortable;
}

}  // namespace isthmus
