#include "daemon/rounds/grace.h"

#include <gtest/gtest.h>

namespace isthmus {
namespace {

constexpr absl::Duration kRound = absl::Seconds(100);

GraceLearner Learn(std::initializer_list<double> lateness) {
  GraceLearner learner;
  RoundId round = 1;
  for (double l : lateness) learner.RoundClosed(round++, absl::Seconds(l), kRound);
  return learner;
}

TEST(Grace, IsUnknownUntilThreeRoundsClosed) {
  EXPECT_FALSE(Learn({}).Grace().has_value());
  EXPECT_FALSE(Learn({20, 20}).Grace().has_value());
  EXPECT_EQ(Learn({20, 20, 20}).Grace(), absl::Seconds(20));
}

TEST(Grace, IsTheMedianPlusFourMedianDeviations) {
  // Median 16, deviations 2 1 0 1 4: median 1.
  EXPECT_EQ(Learn({14, 15, 16, 17, 20}).Grace(), absl::Seconds(20));
  // Even count: median 15.5, deviations 1.5 0.5 0.5 1.5: median 1.
  EXPECT_EQ(Learn({14, 15, 16, 17}).Grace(), absl::Seconds(19.5));
}

TEST(Grace, StaysBetweenATenthAndHalfOfTheMedianRound) {
  EXPECT_EQ(Learn({0, 0, 0}).Grace(), absl::Seconds(10));
  EXPECT_EQ(Learn({70, 70, 70}).Grace(), absl::Seconds(50));
}

TEST(Grace, ForgetsAllButTheLastSixteenRounds) {
  GraceLearner learner;
  for (RoundId r = 1; r <= 50; ++r) learner.RoundClosed(r, absl::Seconds(40), absl::Seconds(1000));
  for (RoundId r = 51; r <= 66; ++r) learner.RoundClosed(r, absl::Seconds(12), kRound);
  EXPECT_EQ(learner.Grace(), absl::Seconds(12));
  EXPECT_EQ(learner.MedianDuration(), kRound);
}

TEST(Grace, LearnsFromFramesThatCameAfterTheClose) {
  GraceLearner learner = Learn({12, 12, 12});
  for (RoundId r = 1; r <= 3; ++r) learner.LateArrival(r, absl::Seconds(30));
  learner.LateArrival(3, absl::Seconds(1));
  learner.LateArrival(99, absl::Seconds(45));
  EXPECT_EQ(learner.Grace(), absl::Seconds(30));
}

TEST(Grace, TreatsNegativeLatenessAsNone) { EXPECT_EQ(Learn({-5, -5, -5}).Grace(), absl::Seconds(10)); }

TEST(Grace, HasNoMedianRoundBeforeTheFirst) {
  EXPECT_EQ(GraceLearner().MedianDuration(), absl::ZeroDuration());
}

}  // namespace
}  // namespace isthmus
