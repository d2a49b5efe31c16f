#include "compression/level_fit.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace isthmus {
namespace {

int SumPortably(const float* magnitudes, const uint8_t* classes, int values, uint8_t which, double* lanes) {
  int count = 0;
  for (int i = 0; i < values; ++i) {
    const bool in = classes[i] == which;
    lanes[i & 7] += in ? static_cast<double>(magnitudes[i]) : 0.0;
    count += in;
  }
  return count;
}

void SplitPortably(const float* magnitudes, int count, const double* levels, uint8_t* classes) {
  for (int i = 0; i < count; ++i) {
    const uint8_t c = classes[i];
    classes[i] = static_cast<uint8_t>(2 * c + (static_cast<double>(magnitudes[i]) > levels[c]));
  }
}

void AssignPortably(const float* magnitudes, int count, const double* bounds, uint8_t* classes) {
  for (int i = 0; i < count; ++i) {
    const double m = magnitudes[i];
    classes[i] = static_cast<uint8_t>((m > bounds[0]) + (m > bounds[1]) + (m > bounds[2]));
  }
}

// Mean of the magnitudes in class `which`, in the order the header fixes.
double ClassMean(absl::Span<const float> magnitudes, const uint8_t* classes, uint8_t which,
                 const ClassFit& fit) {
  double lanes[8] = {};
  const auto sum = fit.sum == nullptr ? SumPortably : fit.sum;
  const int count = sum(magnitudes.data(), classes, static_cast<int>(magnitudes.size()), which, lanes);
  if (count == 0) return 0;
  const double joined =
      ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
  return joined / count;
}

}  // namespace

void FitLevels(absl::Span<const float> magnitudes, int value_bits, absl::Span<uint8_t> classes,
               absl::Span<double> levels, const ClassFit& fit) {
  std::fill(classes.begin(), classes.end(), 0);
  double means[kMostLevels] = {};
  means[0] = ClassMean(magnitudes, classes.data(), 0, fit);
  for (int split = 1; split < value_bits; ++split) {
    (fit.split == nullptr ? SplitPortably : fit.split)(magnitudes.data(), static_cast<int>(magnitudes.size()),
                                                       means, classes.data());
    for (int c = 0; c < 1 << split; ++c) {
      means[c] = ClassMean(magnitudes, classes.data(), static_cast<uint8_t>(c), fit);
    }
  }
  std::copy(means, means + levels.size(), levels.begin());
}

void RefineLevels(absl::Span<const float> magnitudes, int value_bits, int steps, absl::Span<uint8_t> classes,
                  absl::Span<double> levels, const ClassFit& fit) {
  const int last = LevelsOf(value_bits) - 1;
  double bounds[kMostLevels - 1];
  std::fill(std::begin(bounds), std::end(bounds), std::numeric_limits<double>::infinity());
  for (; steps > 0 && last > 0; --steps) {
    bool is_moved = false;
    double lower = levels[0];  // a level of 0 above it is that of an empty class
    for (int c = 0; c < last; ++c) {
      const double upper = std::max(levels[c + 1], lower);
      const double middle = lower + (upper - lower) / 2;
      is_moved |= bounds[c] != middle;
      bounds[c] = middle;
      lower = upper;
    }
    if (!is_moved) return;
    (fit.assign == nullptr ? AssignPortably : fit.assign)(
        magnitudes.data(), static_cast<int>(magnitudes.size()), bounds, classes.data());
    for (int c = 0; c <= last; ++c) {
      levels[c] = ClassMean(magnitudes, classes.data(), static_cast<uint8_t>(c), fit);
    }
  }
}

}  // namespace isthmus
