#include "daemon/rounds/pace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/random.h"
#include "daemon/base/test_seeds.h"

namespace isthmus {
namespace {

using testing::ElementsAre;

constexpr absl::Duration kLongest = absl::Hours(1000);

SitePace Site(const std::string& name, double steps_per_second, double upload_seconds = 0) {
  SitePace s;
  s.life = {name, 1};
  s.steps_per_second = steps_per_second;
  s.upload = absl::Seconds(upload_seconds);
  return s;
}

std::vector<int64_t> Steps(const std::vector<SitePace>& sites, int64_t nominal,
                           absl::Duration longest_round = kLongest) {
  std::vector<int64_t> out;
  for (const SiteSteps& s : PlanSteps(sites, nominal, longest_round)) out.push_back(s.steps);
  return out;
}

TEST(Pace, GivesTheMedianSiteItsNominalStepsAndOthersWhatTheirSpeedAllows) {
  EXPECT_THAT(Steps({Site("a", 6), Site("b", 3), Site("c", 1)}, 30), ElementsAre(60, 30, 10));
}

TEST(Pace, TakesTheFasterOfTheMiddleTwo) {
  // T = 30 / 4 s.
  EXPECT_THAT(Steps({Site("a", 2), Site("b", 4)}, 30), ElementsAre(15, 30));
  EXPECT_THAT(Steps({Site("a", 1), Site("b", 2), Site("c", 4), Site("d", 8)}, 30),
              ElementsAre(7, 15, 30, 60));
}

TEST(Pace, LetsASiteWithASlowUplinkStopEarlier) {
  // T = 10 + 2 s; b has 12 − 6 s at 3 steps a second, c 12 − 0 s.
  EXPECT_THAT(Steps({Site("a", 3, 2), Site("b", 3.0001, 6), Site("c", 2.9999, 0)}, 30),
              ElementsAre(30, 18, 35));
}

TEST(Pace, StaysBetweenOneAndFourTimesNominal) {
  EXPECT_THAT(Steps({Site("a", 100), Site("b", 1), Site("c", 0.001)}, 30), ElementsAre(120, 30, 1));
  EXPECT_THAT(Steps({Site("a", 1, 500), Site("b", 1.1), Site("c", 1.2)}, 30), ElementsAre(1, 30, 32));
}

TEST(Pace, PlansNoRoundThatTheHardDeadlineWouldAbort) {
  // 30 steps take 300 s of the 100 s there are: nine tenths of them, less the upload.
  EXPECT_THAT(Steps({Site("a", 0.1, 10)}, 30, absl::Seconds(100)), ElementsAre(8));
  EXPECT_THAT(Steps({Site("a", 0.1), Site("b", 0.2), Site("c", 0.05)}, 30, absl::Seconds(100)),
              ElementsAre(9, 18, 4));
  EXPECT_EQ(PlannedRound({Site("a", 0.1)}, 30, absl::Seconds(100)), absl::Seconds(90));
}

TEST(Pace, GivesNominalStepsToSitesOfUnknownSpeed) {
  EXPECT_THAT(Steps({Site("a", 0), Site("b", 5)}, 30), ElementsAre(30, 30));
  EXPECT_THAT(Steps({Site("a", 0), Site("b", std::numeric_limits<double>::quiet_NaN())}, 30),
              ElementsAre(30, 30));
  EXPECT_THAT(Steps({}, 30), ElementsAre());
}

TEST(Pace, TakesAnEvaluationOffTheStepsOfWhoeverDoesIt) {
  SitePace evaluator = Site("a", 3);
  evaluator.other_work = absl::Seconds(4);
  EXPECT_THAT(Steps({evaluator, Site("b", 3)}, 30), ElementsAre(18, 30));
}

TEST(Pace, DoesNotLoseAStepToRounding) {
  for (double speed : {0.1, 0.3, 0.7, 1.1, 3.3, 7.7, 13.37}) {
    EXPECT_THAT(Steps({Site("a", speed, 0.123)}, 30), ElementsAre(30)) << speed;
  }
}

TEST(Pace, PlansTheRoundOfTheMedianSite) {
  EXPECT_EQ(PlannedRound({Site("a", 6), Site("b", 3, 2), Site("c", 1)}, 30, kLongest), absl::Seconds(12));
  EXPECT_EQ(PlannedRound({Site("a", 0)}, 30, kLongest), absl::ZeroDuration());
}

TEST(Pace, BringsEveryUnclampedFrameInByThePlannedTimeAndNotAStepEarlier) {
  for (uint64_t seed : TestSeeds(2000)) {
    SCOPED_TRACE(ReplayLine("//daemon/rounds:pace_test", seed));
    Random random(seed);
    std::vector<SitePace> sites;
    for (int i = random.Below(9); i >= 0; --i) {
      sites.push_back(Site(absl::StrCat("s", i), 0.1 + 10 * random.Uniform(), 5 * random.Uniform()));
    }
    const int64_t nominal = 1 + random.Below(100);
    const double planned = absl::ToDoubleSeconds(PlannedRound(sites, nominal, kLongest));
    const std::vector<SiteSteps> plan = PlanSteps(sites, nominal, kLongest);
    for (size_t i = 0; i < sites.size(); ++i) {
      EXPECT_EQ(plan[i].life, sites[i].life);
      ASSERT_GE(plan[i].steps, 1);
      ASSERT_LE(plan[i].steps, 4 * nominal);
      const double upload = absl::ToDoubleSeconds(sites[i].upload), step = 1 / sites[i].steps_per_second;
      if (plan[i].steps > 1) {
        ASSERT_LE(plan[i].steps * step + upload, planned + 1e-5);
      }
      if (plan[i].steps < 4 * nominal) {
        ASSERT_GT((plan[i].steps + 1) * step + upload, planned - 1e-5);
      }
    }
  }
}

TEST(PaceLearner, KnowsNothingAtFirstThenTheMedianOfTheLastFive) {
  PaceLearner learner;
  EXPECT_EQ(learner.steps_per_second(), 0);
  EXPECT_EQ(learner.upload(), absl::ZeroDuration());
  for (int seconds : {100, 10, 5, 10, 20, 1}) learner.StepsDone(20, absl::Seconds(seconds));
  // 2, 4, 2, 1, 20 steps a second remain.
  EXPECT_EQ(learner.steps_per_second(), 2);
  for (int seconds : {9, 1, 3}) learner.Uploaded(absl::Seconds(seconds));
  EXPECT_EQ(learner.upload(), absl::Seconds(3));
}

TEST(PaceLearner, IgnoresWhatCannotBe) {
  PaceLearner learner;
  learner.StepsDone(0, absl::Seconds(1));
  learner.StepsDone(5, absl::ZeroDuration());
  learner.Uploaded(absl::Seconds(-1));
  EXPECT_EQ(learner.steps_per_second(), 0);
  EXPECT_EQ(learner.upload(), absl::ZeroDuration());
}

}  // namespace
}  // namespace isthmus
