#include "daemon/training/mask_code.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compression/layout.h"

namespace isthmus {
namespace {

constexpr double kStiffness[] = {1, 4, 16, 64};

// How much more is kept somewhere than was expected there.
struct Excess {
  double kept = 0, expected = 0;

  double Factor(double s) const { return (kept + s) / (expected + s); }
  void See(bool is_kept, double chance) {
    kept += is_kept ? 1 : 0;
    expected += chance;
  }
};

double BitsWith(absl::Span<const uint8_t> mask, int64_t columns, const MaskContext& context, double s) {
  Excess row, by_before[2];
  std::vector<Excess> by_column(columns);
  double bits = 0, kept_left = 0, left = 0;
  for (size_t i = 0; i < mask.size(); ++i) {
    if (i % kBlockValues == 0) {
      left = static_cast<double>(std::min<size_t>(kBlockValues, mask.size() - i));
      kept_left = 0;
      for (size_t j = 0; j < static_cast<size_t>(left); ++j) kept_left += mask[i + j];
    }
    const size_t column = i % columns;
    if (column == 0) row = Excess();
    const double chance = kept_left / left;
    Excess* const before = context.before.empty() ? nullptr : &by_before[context.before[i]];
    if (kept_left > 0 && kept_left < left) {
      double odds = kept_left / (left - kept_left);
      if (context.row) odds *= row.Factor(s);
      if (context.column) odds *= by_column[column].Factor(s);
      if (before != nullptr) odds *= before->Factor(s);
      bits += std::log2(mask[i] ? (1 + odds) / odds : 1 + odds);
    }
    row.See(mask[i], chance);
    by_column[column].See(mask[i], chance);
    if (before != nullptr) before->See(mask[i], chance);
    kept_left -= mask[i];
    left -= 1;
  }
  return bits;
}

}  // namespace

double MaskBits(absl::Span<const uint8_t> mask, int64_t columns, const MaskContext& context) {
  if (!context.row && !context.column && context.before.empty()) return BitsWith(mask, columns, context, 1);
  double best = std::numeric_limits<double>::infinity();
  for (double s : kStiffness) best = std::min(best, BitsWith(mask, columns, context, s));
  return best + 2;
}

}  // namespace isthmus
