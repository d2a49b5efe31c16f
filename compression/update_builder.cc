#include "compression/update_builder.h"

#include <algorithm>
#include <cstring>

namespace isthmus {
namespace {

int64_t SumAt(const BlockSums& sums, int i) {
  if (sums.narrow == nullptr) return sums.wide[i];
  // A product, not a shift: the sum can be negative.
  return int64_t{sums.narrow[i]} * (int64_t{1} << sums.narrow_shift);
}

void AppendSparse(const BlockSums& sums, UpdateTensor* out) {
  size_t marked = 0;
  for (int word = 0; word < kSumMarkWords; ++word)
    marked += static_cast<size_t>(__builtin_popcountll(sums.marks[word]));
  const size_t first = out->sums.size();
  out->positions.resize(first + marked);
  out->sums.resize(first + marked);
  if (sums.weights != nullptr) out->weights.resize(first + marked);
  uint32_t* positions = out->positions.data() + first;
  int64_t* to = out->sums.data() + first;
  int32_t* weights = sums.weights == nullptr ? nullptr : out->weights.data() + first;
  for (int word = 0; word < kSumMarkWords; ++word) {
    for (uint64_t mark = sums.marks[word]; mark != 0; mark &= mark - 1) {
      const int i = 64 * word + __builtin_ctzll(mark);
      *positions++ = static_cast<uint32_t>(sums.from + i);
      *to++ = SumAt(sums, i);
      if (weights != nullptr) *weights++ = sums.weights[i];
    }
  }
}

}  // namespace

void BeginUpdateTensor(const TensorSum& sum, bool has_weights, UpdateTensor* out) {
  out->form = sum.form();
  out->exponent = sum.exponent();
  out->left_out = sum.left_out();
  if (sum.form() == TensorForm::kAbsent) return;
  const size_t most = sum.MostPositions();
  out->sums.reserve(most);
  if (sum.form() == TensorForm::kSparse) out->positions.reserve(most);
  if (has_weights) out->weights.reserve(most);
}

void AppendBlock(const BlockSums& sums, UpdateTensor* out) {
  if (out->form == TensorForm::kSparse) return AppendSparse(sums, out);
  for (int i = 0; i < sums.values; ++i) out->sums.push_back(SumAt(sums, i));
  if (sums.weights != nullptr)
    out->weights.insert(out->weights.end(), sums.weights, sums.weights + sums.values);
}

void ClearBlock(const BlockSums& sums) {
  const size_t values = static_cast<size_t>(sums.values);
  if (sums.narrow != nullptr) std::memset(sums.narrow, 0, values * sizeof *sums.narrow);
  if (sums.wide != nullptr) std::memset(sums.wide, 0, values * sizeof *sums.wide);
  if (sums.weights != nullptr) std::memset(sums.weights, 0, values * sizeof *sums.weights);
  if (sums.marks != nullptr) std::memset(sums.marks, 0, kSumMarkWords * sizeof *sums.marks);
}

}  // namespace isthmus
