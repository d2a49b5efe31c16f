#include "compression/level_fit.h"

#include <algorithm>
#include <cstddef>

namespace isthmus {
namespace {

// Mean of the magnitudes in class `which`, in the order the header fixes.
double ClassMean(absl::Span<const float> magnitudes, absl::Span<const uint8_t> classes, uint8_t which) {
  double lanes[8] = {};
  int count = 0;
  for (size_t i = 0; i < magnitudes.size(); ++i) {
    const bool in = classes[i] == which;
    lanes[i & 7] += in ? static_cast<double>(magnitudes[i]) : 0.0;
    count += in;
  }
  if (count == 0) return 0;
  const double sum =
      ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
  return sum / count;
}

}  // namespace

void FitLevels(absl::Span<const float> magnitudes, int value_bits, absl::Span<uint8_t> classes,
               absl::Span<double> levels) {
  std::fill(classes.begin(), classes.end(), 0);
  levels[0] = ClassMean(magnitudes, classes, 0);
  for (int split = 1; split < value_bits; ++split) {
    for (size_t i = 0; i < magnitudes.size(); ++i) {
      const uint8_t c = classes[i];
      classes[i] = static_cast<uint8_t>(2 * c + (static_cast<double>(magnitudes[i]) > levels[c]));
    }
    for (int c = 0; c < 1 << split; ++c) levels[c] = ClassMean(magnitudes, classes, static_cast<uint8_t>(c));
  }
}

}  // namespace isthmus
