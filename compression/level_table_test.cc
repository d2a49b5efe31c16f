#include "compression/level_table.h"

#include <gtest/gtest.h>

#include <limits>

namespace isthmus {
namespace {

TEST(LevelTableTest, LevelsRunFromSeventeenTo31Times2To15InStepsOfAtMostOneSixteenth) {
  EXPECT_EQ(LevelValue(0), 0);
  EXPECT_EQ(LevelValue(1), 17);
  EXPECT_EQ(LevelValue(15), 31);
  EXPECT_EQ(LevelValue(16), 32);
  EXPECT_EQ(LevelValue(17), 34);
  EXPECT_EQ(LevelValue(255), 31 << 15);
  for (int c = 2; c < 256; ++c) {
    EXPECT_GT(LevelValue(c), LevelValue(c - 1));
    EXPECT_LE((LevelValue(c) - LevelValue(c - 1)) * 16, LevelValue(c - 1));
  }
}

TEST(LevelTableTest, NearestLevelIsWhatASearchOfTheWholeTableFinds) {
  for (double x = 0; x < 1.1 * kLargestLevel; x += x < 200 ? 0.25 : x / 511) {
    int best = 0;
    for (int c = 1; c < 256; ++c) {
      if (std::fabs(LevelValue(c) - x) < std::fabs(LevelValue(best) - x)) best = c;
    }
    ASSERT_EQ(NearestLevel(x), best) << x;
  }
}

TEST(LevelTableTest, OfTwoLevelsAsNearTheLowerIsTaken) {
  EXPECT_EQ(NearestLevel(8.5), 0);
  EXPECT_EQ(NearestLevel(17.5), 1);
  EXPECT_EQ(NearestLevel(31.5), 15);
  EXPECT_EQ(NearestLevel(33), 16);
}

TEST(LevelTableTest, ExponentIsTheLeastThatFits) {
  for (double largest : {1.0, 31.0, 31.5, 1e-20, 0.96875, 0.97, 3e30, 1e-38}) {
    const int e = LevelExponent(largest);
    EXPECT_LE(largest, std::ldexp(kLargestLevel, e)) << largest;
    EXPECT_GT(largest, std::ldexp(kLargestLevel, e - 1)) << largest;
  }
}

TEST(LevelTableTest, ExponentStaysWhereDecodedValuesAreFiniteAndNotBelowTheLeastFloat) {
  EXPECT_EQ(LevelExponent(std::numeric_limits<float>::denorm_min()), kLeastExponent);
  EXPECT_EQ(LevelExponent(std::numeric_limits<float>::max()), kMostLevelExponent);
  EXPECT_LT(std::ldexp(kLargestLevel, kMostLevelExponent), std::numeric_limits<float>::max());
}

}  // namespace
}  // namespace isthmus
