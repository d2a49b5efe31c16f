#include "daemon/training/mask_code.h"

#include <gtest/gtest.h>

#include <cmath>

namespace isthmus {
namespace {

double Log2Choose(double n, double k) {
  return (std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1)) / std::log(2);
}

// Kept values at a fixed stride from `first` on.
std::vector<uint8_t> Strided(size_t size, size_t first, size_t stride) {
  std::vector<uint8_t> mask(size, 0);
  for (size_t i = first; i < size; i += stride) mask[i] = 1;
  return mask;
}

TEST(MaskCode, WithoutContextABlockCostsTheLogarithmOfNOverK) {
  EXPECT_NEAR(MaskBits(Strided(4096, 5, 64), 64, {}), Log2Choose(4096, 64), 1e-6);
  EXPECT_NEAR(MaskBits(Strided(8192, 0, 64), 64, {}), 2 * Log2Choose(4096, 64), 1e-6);
  EXPECT_NEAR(MaskBits(Strided(5000, 0, 1000), 10, {}), Log2Choose(4096, 5) + Log2Choose(904, 0), 1e-6);
}

TEST(MaskCode, NothingOrEverythingKeptCostsNothing) {
  EXPECT_EQ(MaskBits(std::vector<uint8_t>(100, 0), 10, {}), 0);
  EXPECT_EQ(MaskBits(std::vector<uint8_t>(100, 1), 10, {}), 0);
  EXPECT_EQ(MaskBits({}, 10, {}), 0);
}

TEST(MaskCode, AColumnOfKeptValuesIsCheapByColumnAndNotByRow) {
  const std::vector<uint8_t> mask = Strided(4096, 7, 64);  // one column of a matrix 64 wide
  MaskContext column, row;
  column.column = true;
  row.row = true;
  EXPECT_LT(MaskBits(mask, 64, column), 0.5 * MaskBits(mask, 64, {}));
  EXPECT_GT(MaskBits(mask, 64, row), 0.98 * MaskBits(mask, 64, {}));
}

TEST(MaskCode, ARowOfKeptValuesIsCheapByRow) {
  std::vector<uint8_t> mask(4096, 0);
  for (int i = 640; i < 704; ++i) mask[i] = 1;
  MaskContext row;
  row.row = true;
  EXPECT_LT(MaskBits(mask, 64, row), 0.5 * MaskBits(mask, 64, {}));
}

TEST(MaskCode, TheSameMaskAsBeforeIsCheap) {
  std::vector<uint8_t> mask(4096, 0);
  for (int i = 0; i < 64; ++i) mask[i * i] = 1;
  MaskContext context;
  context.before = mask;
  EXPECT_LT(MaskBits(mask, 64, context), 0.5 * MaskBits(mask, 64, {}));
}

}  // namespace
}  // namespace isthmus
