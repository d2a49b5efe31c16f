#include "gpu/block_apply.h"

#include <cmath>

namespace isthmus {
namespace {

// rate · 2^exponent / total_weight where that makes the two roundings of an apply one: the weight must be a
// power of two, and neither mean nor product below the normal numbers or above the finite ones. 0 otherwise.
float OneFactor(int exponent, int64_t total_weight, float rate) {
  if ((total_weight & (total_weight - 1)) != 0) return 0;
  constexpr int kSumBits = 31;
  const int power = exponent - __builtin_ctzll(static_cast<uint64_t>(total_weight));
  if (power < -126 || power + kSumBits > 127) return 0;
  const float factor = std::ldexp(rate, power);
  const bool is_exact = std::isnormal(factor) && std::ldexp(factor, -power) == rate;
  return is_exact ? factor : 0;
}

void MoveOne(const BlockStep& step, int32_t sum, float* anchor) {
  const float mean = static_cast<float>(static_cast<double>(sum) * step.scale / step.total_weight);
  const float shift = step.rate * mean;
  *anchor = *anchor - shift;
}

void ApplyNarrow(const BlockStep& step, int32_t* sums, int values, float* anchor) {
  for (int i = 0; i < values; ++i) {
    MoveOne(step, sums[i], &anchor[i]);
    sums[i] = 0;
  }
}

void ApplyPairs(const BlockStep& step, int16_t* pairs, int values, float* anchor) {
  for (int i = 0; i < values; ++i) {
    MoveOne(step, pairs[2 * i] - pairs[2 * i + 1], &anchor[i]);
    pairs[2 * i] = pairs[2 * i + 1] = 0;
  }
}

}  // namespace

BlockStep BlockStep::Of(int exponent, int64_t total_weight, float rate) {
  BlockStep step;
  step.scale = std::ldexp(1.0, exponent);
  step.total_weight = static_cast<double>(total_weight);
  step.reciprocal = 1 / step.total_weight;
  step.rate = rate;
  step.factor = OneFactor(exponent, total_weight, rate);
  return step;
}

const BlockApply& BlockApplyPortable() {
  static constexpr BlockApply kApply{ApplyNarrow, ApplyPairs};
  return kApply;
}

const BlockApply& BlockApplyOf(SimdPath path) {
  const BlockApply* apply = nullptr;
  if (HasSimdPath(path) && path == SimdPath::kAvx2) apply = BlockApplyAvx2();
  if (HasSimdPath(path) && path == SimdPath::kAvx512) apply = BlockApplyAvx512();
  return apply == nullptr ? BlockApplyPortable() : *apply;
}

}  // namespace isthmus
