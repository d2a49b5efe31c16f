#include "compression/level_fit.h"

#include <gtest/gtest.h>

#include <vector>

namespace isthmus {
namespace {

struct Fit {
  std::vector<double> levels;
  std::vector<uint8_t> classes;
};

Fit FitOf(const std::vector<float>& magnitudes, int bits) {
  Fit fit;
  fit.levels.resize(LevelsOf(bits));
  fit.classes.resize(magnitudes.size());
  FitLevels(magnitudes, bits, absl::MakeSpan(fit.classes), absl::MakeSpan(fit.levels));
  return fit;
}

TEST(LevelFitTest, OneLevelIsTheMean) {
  const Fit fit = FitOf({1, 2, 3, 10}, 1);
  EXPECT_EQ(fit.levels, (std::vector<double>{4}));
  EXPECT_EQ(fit.classes, (std::vector<uint8_t>{0, 0, 0, 0}));
}

TEST(LevelFitTest, TwoLevelsAreTheMeansOnEitherSideOfTheMean) {
  const Fit fit = FitOf({1, 2, 3, 10}, 2);
  EXPECT_EQ(fit.levels, (std::vector<double>{2, 10}));
  EXPECT_EQ(fit.classes, (std::vector<uint8_t>{0, 0, 0, 1}));
}

TEST(LevelFitTest, FourLevelsSplitOnceMore) {
  const Fit fit = FitOf({1, 2, 4, 10, 12, 20}, 3);  // mean 49/6; 7/3 and 14
  EXPECT_EQ(fit.levels, (std::vector<double>{1.5, 4, 11, 20}));
  EXPECT_EQ(fit.classes, (std::vector<uint8_t>{0, 0, 1, 2, 2, 3}));
}

TEST(LevelFitTest, EqualMagnitudesLeaveTheUpperClassesEmpty) {
  const Fit fit = FitOf(std::vector<float>(9, 0.1f), 2);
  EXPECT_DOUBLE_EQ(fit.levels[0], 0.1f);
  EXPECT_EQ(fit.levels[1], 0);
}

TEST(LevelFitTest, SumsAreTakenInEightLanesJoinedInTheFixedOrder) {
  // 2^60 swallows a 1 unless they meet in another lane first.
  std::vector<float> magnitudes(16, 0);
  magnitudes[0] = 0x1p60f;
  magnitudes[8] = 1;   // lane 0: lost there
  magnitudes[3] = 64;  // lanes 3 and 7 meet before they see lane 0, and are lost all the same
  magnitudes[7] = 64;  // 128 is half a step of 2^60: half to even drops it
  EXPECT_EQ(FitOf(magnitudes, 1).levels[0], 0x1p56);
  magnitudes[11] = 64;  // lane 3 is now 128; 192 rounds up by a whole step of 256
  EXPECT_EQ(FitOf(magnitudes, 1).levels[0], 0x1p56 + 16);
}

}  // namespace
}  // namespace isthmus
