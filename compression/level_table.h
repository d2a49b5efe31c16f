// The 255 magnitudes a kept value can have, and zero (ROUNDS §8 "Level"). Header-only, pure.
#ifndef ISTHMUS_COMPRESSION_LEVEL_TABLE_H_
#define ISTHMUS_COMPRESSION_LEVEL_TABLE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace isthmus {

// Bits of the largest level, 31·2^15: what DecodedTensor::mantissa_bits says for sparse tensors.
inline constexpr int kLevelMantissaBits = 20;
inline constexpr int32_t kLargestLevel = 31 << 15;

// The range of a sparse tensor's exponent: below the least fp32 value nothing is worth sending, and at the
// top the largest level is still a finite fp32.
inline constexpr int kLeastExponent = -149;
inline constexpr int kMostLevelExponent = 108;

// Integer worth of level byte `c`: 0 for 0, else (16 + c mod 16) << (c div 16), 17 … 31·2^15.
constexpr int32_t LevelValue(uint8_t c) { return c == 0 ? 0 : (16 + (c & 15)) << (c >> 4); }

// What is not above it is nearest to level 0.
inline constexpr double kZeroLevelBound = 8.5;

// The level nearest to x ≥ 0, the lower of two as near; 255 for all above the largest.
inline uint8_t NearestLevel(double x) {
  if (x < 17) return x > kZeroLevelBound ? 1 : 0;
  if (x >= kLargestLevel) return 255;
  int exponent = 0;
  std::frexp(x, &exponent);  // 2^(exponent−1) ≤ x < 2^exponent
  const int shift = exponent - 5;
  const int steps = static_cast<int>(std::ceil(std::ldexp(x, -shift) - 0.5));  // 16 … 32
  return static_cast<uint8_t>(std::min(shift * 16 + steps - 16, 255));
}

// What NearestLevel stands for times 2^E where x = level / 2^E lies well within the table, whatever E is: the
// level ≥ 0 to five significant bits, the lower of two as near.
inline double FiveBits(double level) {
  int exponent = 0;
  std::frexp(level, &exponent);
  return std::ldexp(std::ceil(std::ldexp(level, 5 - exponent) - 0.5), exponent - 5);
}

// The least exponent E in range with largest ≤ 31·2^15·2^E; largest > 0 and finite.
inline int LevelExponent(double largest) {
  int exponent = 0;
  const double fraction = std::frexp(largest, &exponent);
  const int fits = fraction <= 31.0 / 32.0 ? exponent - 20 : exponent - 19;
  return std::clamp(fits, kLeastExponent, kMostLevelExponent);
}

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_LEVEL_TABLE_H_
