#include "daemon/exchange/fault_plan.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"

namespace isthmus {
namespace {

TEST(FaultPlan, StrikesWithinItsBudgetOnItsSideAndTargetAndSite) {
  FaultPlan plan;
  Fault fault;
  fault.kind = FaultKind::kDelayed;
  fault.target = FaultTarget::kUpload;
  fault.side = FaultSide::kUp;
  fault.site = "alpha";
  fault.budget = 2;
  plan.Add(fault);
  EXPECT_FALSE(plan.Strike(FaultTarget::kControl, FaultSide::kUp, "alpha").has_value());
  EXPECT_FALSE(plan.Strike(FaultTarget::kUpload, FaultSide::kDown, "alpha").has_value());
  EXPECT_FALSE(plan.Strike(FaultTarget::kUpload, FaultSide::kUp, "beta").has_value());
  EXPECT_TRUE(plan.Strike(FaultTarget::kUpload, FaultSide::kUp, "alpha").has_value());
  EXPECT_TRUE(plan.Strike(FaultTarget::kUpload, FaultSide::kUp, "alpha").has_value());
  EXPECT_FALSE(plan.Strike(FaultTarget::kUpload, FaultSide::kUp, "alpha").has_value());
  EXPECT_EQ(plan.struck(FaultKind::kDelayed), 2);
  EXPECT_EQ(plan.struck(FaultKind::kBroken), 0);
}

TEST(FaultPlan, LetsTheFirstOpportunitiesPassWhenToldTo) {
  FaultPlan plan;
  Fault fault;
  fault.skip = 2;
  plan.Add(fault);
  EXPECT_FALSE(plan.Strike(FaultTarget::kControl, FaultSide::kUp, "alpha").has_value());
  EXPECT_FALSE(plan.Strike(FaultTarget::kControl, FaultSide::kUp, "alpha").has_value());
  EXPECT_TRUE(plan.Strike(FaultTarget::kControl, FaultSide::kUp, "alpha").has_value());
}

TEST(FaultPlan, TheSameSeedGivesTheSameStrikes) {
  auto strikes = [](uint64_t seed) {
    FaultPlan plan;
    Fault fault;
    fault.budget = 1000;
    fault.probability = 0.3;
    fault.seed = seed;
    plan.Add(fault);
    std::vector<bool> struck;
    for (int i = 0; i < 1000; ++i) {
      struck.push_back(plan.Strike(FaultTarget::kFetch, FaultSide::kUp, "alpha").has_value());
    }
    return struck;
  };
  EXPECT_EQ(strikes(1), strikes(1));
  EXPECT_NE(strikes(1), strikes(2));
  const std::vector<bool> one = strikes(1);
  EXPECT_NEAR(std::count(one.begin(), one.end(), true), 300, 50);
}

TEST(FaultPlan, EveryKindHasAName) {
  for (int kind = 0; kind <= static_cast<int>(FaultKind::kBroken); ++kind) {
    EXPECT_NE(FaultKindName(static_cast<FaultKind>(kind)), "unknown");
  }
}

}  // namespace
}  // namespace isthmus
