#include "daemon/training/schedule.h"

#include "gtest/gtest.h"

namespace isthmus {
namespace {

TEST(ScheduleTest, RateRisesThroughTheWarmUpAndFallsToTheFloor) {
  ScheduleOptions o;
  o.peak_rate = 1;
  o.warmup_fraction = 0.1;
  o.floor_fraction = 0.05;
  o.total_steps = 100;
  EXPECT_DOUBLE_EQ(LearningRate(o, 0), 0.1);
  EXPECT_DOUBLE_EQ(LearningRate(o, 9), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(o, 10), 1.0);
  EXPECT_NEAR(LearningRate(o, 55), 0.525, 1e-12);
  EXPECT_NEAR(LearningRate(o, 100), 0.05, 1e-12);
  EXPECT_NEAR(LearningRate(o, 1000), 0.05, 1e-12);
}

TEST(ScheduleTest, AStepStandsWhereItsShareOfTheRoundPutsIt) {
  StepPosition p;
  p.schedule_step = 60;
  p.inner_steps_per_round = 30;
  p.assigned_steps = 10;
  p.steps_done = 4;
  EXPECT_EQ(ScheduleStepOf(p), 72);
  p.steps_done = 25;  // late: held at the round's end
  EXPECT_EQ(ScheduleStepOf(p), 89);
  p.is_frame_pending = true;
  p.steps_done = 0;
  EXPECT_EQ(ScheduleStepOf(p), 90);
}

TEST(ScheduleTest, LengthOfTheRunDecidesOuterRateAndDensity) {
  EXPECT_EQ(AutoOuterRate(1), 1.0);
  EXPECT_EQ(AutoOuterRate(600), 1.0);
  EXPECT_EQ(AutoOuterRate(2000), 1.0);
  EXPECT_EQ(AutoOuterRate(4000), 1.5);
  EXPECT_EQ(AutoOuterRate(6000), 1.8125);  // 1.792 to the sixteenth
  EXPECT_EQ(AutoOuterRate(8000), 2.0);
  EXPECT_EQ(AutoOuterRate(int64_t{1} << 62), 2.0);
  EXPECT_EQ(AutoKeptPerBlock(40), 512);
  EXPECT_EQ(AutoKeptPerBlock(120), 128);
  EXPECT_EQ(AutoKeptPerBlock(400), 64);
  EXPECT_EQ(AutoKeptPerBlock(1), 512);
}

}  // namespace
}  // namespace isthmus
