// Which levels stand for a block's kept magnitudes, and which value takes which.
#ifndef ISTHMUS_COMPRESSION_LEVEL_FIT_H_
#define ISTHMUS_COMPRESSION_LEVEL_FIT_H_

#include <cstdint>

#include "absl/types/span.h"

namespace isthmus {

inline constexpr int kMostLevels = 4;

// Levels of a value of `value_bits` bits: one for 1 (the sign is the bit), two for 2, four for 3.
constexpr int LevelsOf(int value_bits) { return 1 << (value_bits - 1); }

// The passes of a fit, which vector instructions speed up; the same numbers from each table. Null: plain C++.
struct ClassFit {
  // lanes[i mod 8] += magnitudes[i], in order, for those in class `which`; how many they are.
  int (*sum)(const float* magnitudes, const uint8_t* classes, int count, uint8_t which,
             double* lanes) = nullptr;
  // classes[i] = 2·classes[i] + (magnitudes[i] > levels[classes[i]]); levels is kMostLevels long.
  void (*split)(const float* magnitudes, int count, const double* levels, uint8_t* classes) = nullptr;
  // classes[i] = how many of the kMostLevels − 1 ascending `bounds` are less than magnitudes[i].
  void (*assign)(const float* magnitudes, int count, const double* bounds, uint8_t* classes) = nullptr;
};

// Splits the magnitudes at their mean, each class again at its own, value_bits − 1 times; class numbers grow
// with the magnitude. levels[c] is then the mean of class c, 0 for an empty one. A magnitude equal to a mean
// is in the lower class. `classes` is as long as `magnitudes`, `levels` LevelsOf(value_bits); magnitudes ≥ 0,
// finite.
//
// Every mean is a sum in double of eight lanes (value i of the block's kept ones goes to lane i mod 8, in
// order), joined as ((0+4)+(2+6)) + ((1+5)+(3+7)), divided by the count: the bytes of a frame depend on this
// order.
void FitLevels(absl::Span<const float> magnitudes, int value_bits, absl::Span<uint8_t> classes,
               absl::Span<double> levels, const ClassFit& fit = ClassFit());

// Takes a fit nearer to the least square error, `steps` times (Lloyd): the bound between two classes becomes
// the middle of their levels, and each level the mean of what is now in its class. For two and three bits;
// with one there is nothing to refine. An empty class counts as its lower neighbour when bounds are set, and
// its level is 0. Ends early when a step moves no bound. Order of summation, and who may be given what, as
// above.
void RefineLevels(absl::Span<const float> magnitudes, int value_bits, int steps, absl::Span<uint8_t> classes,
                  absl::Span<double> levels, const ClassFit& fit = ClassFit());

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_LEVEL_FIT_H_
