#include "compression/tensor_plan.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "compression/bit_budget.h"
#include "compression/test_random.h"

namespace isthmus {
namespace {

constexpr int64_t kValues = 16 * 4096;

CodecSpec Spec(int k, int value_bits, CodecSpec::Share share = CodecSpec::Share::kUniform) {
  CodecSpec spec;
  spec.k = k;
  spec.value_bits = value_bits;
  spec.share = share;
  return spec;
}

// One tensor each of normal, Laplace, t(3) and no differences.
class TensorPlanTest : public ::testing::Test {
 protected:
  TensorPlanTest() : layout_({kValues, kValues, kValues, kValues}, 1), zeros_(layout_.total()) {
    TestRandom random(41);
    Draw([&] { return random.BoxMuller(); });
    Draw([&] { return 1e-3 * random.Laplace(); });
    Draw([&] { return 1e-2 * random.StudentT(3); });
    Draw([] { return 0.0; });
  }

  std::vector<TensorPlan> Plan(const CodecSpec& spec, SimdPath path = SimdPath::kPortable) const {
    return PlanTensors(spec, layout_, differences_, zeros_, path);
  }

  const Layout layout_;
  const std::vector<float> zeros_;
  std::vector<float> differences_;

 private:
  void Draw(const std::function<double()>& draw) {
    for (int64_t i = 0; i < kValues; ++i) differences_.push_back(static_cast<float>(draw()));
  }
};

TEST_F(TensorPlanTest, FixedBitsAndUniformShareAreTheSpecs) {
  for (const TensorPlan& plan : Plan(Spec(64, 1))) {
    EXPECT_EQ(plan.k, 64);
    EXPECT_EQ(plan.value_bits, 1);
    EXPECT_EQ(plan.lloyd_steps, 0);
  }
  const std::vector<TensorPlan> two = Plan(Spec(64, 2));
  for (const TensorPlan& plan : two) {
    EXPECT_EQ(plan.k, 64);
    EXPECT_EQ(plan.value_bits, 2);
  }
  EXPECT_EQ(two[0].lloyd_steps, 0);
  EXPECT_EQ(two[2].lloyd_steps, 4);
  EXPECT_EQ(two[3].lloyd_steps, 0);
}

TEST_F(TensorPlanTest, AutoGivesHeavyTailsWiderValuesAtEqualCost) {
  const std::vector<TensorPlan> plans = Plan(Spec(64, kAutoValueBits));
  for (int t : {0, 1, 3}) {
    EXPECT_EQ(plans[t].value_bits, 1) << t;
    EXPECT_EQ(plans[t].k, 64) << t;
  }
  EXPECT_GE(plans[2].value_bits, 2);
  EXPECT_EQ(plans[2].lloyd_steps, 4);
  EXPECT_EQ(plans[2].k, KeptAtEqualCost(64, 1, plans[2].value_bits));
  EXPECT_LT(plans[2].k, 64);
}

TEST_F(TensorPlanTest, TailsChooseBitsAndSteps) {
  EXPECT_EQ(ValueBitsFor(0), 1);
  EXPECT_EQ(ValueBitsFor(1.006), 1);
  EXPECT_EQ(ValueBitsFor(1.06), 2);
  EXPECT_EQ(ValueBitsFor(1.4), 3);
  EXPECT_EQ(LloydStepsFor(1.006), 0);
  EXPECT_EQ(LloydStepsFor(1.04), 2);
  EXPECT_EQ(LloydStepsFor(1.2), 4);
}

TEST_F(TensorPlanTest, EnergyDividesOneBudget) {
  for (int bits : {1, 2, 3, kAutoValueBits}) {
    const std::vector<TensorPlan> plans = Plan(Spec(64, bits, CodecSpec::Share::kEnergy));
    EXPECT_GT(plans[0].k, plans[2].k);
    const auto cost_of = [&plans](int t) { return BlockCost(plans[t].k, plans[t].value_bits); };
    EXPECT_EQ(plans[1].k, 16);  // the quietest
    int64_t cost = 0;
    for (int t : {0, 1, 2}) cost += cost_of(t);
    EXPECT_LE(cost, 3 * BlockCost(64, bits == kAutoValueBits ? 1 : bits));
    EXPECT_GT(cost, 2.9 * BlockCost(64, bits == kAutoValueBits ? 1 : bits));
  }
}

TEST_F(TensorPlanTest, EveryPathPlansTheSame) {
  for (SimdPath path : kAllSimdPaths) {
    if (!HasSimdPath(path)) continue;  // the survey's test says which
    for (int bits : {2, kAutoValueBits}) {
      const CodecSpec spec = Spec(64, bits, CodecSpec::Share::kEnergy);
      const std::vector<TensorPlan> oracle = Plan(spec), plans = Plan(spec, path);
      for (size_t t = 0; t < plans.size(); ++t) {
        EXPECT_EQ(plans[t].k, oracle[t].k);
        EXPECT_EQ(plans[t].value_bits, oracle[t].value_bits);
        EXPECT_EQ(plans[t].lloyd_steps, oracle[t].lloyd_steps);
      }
    }
  }
}

}  // namespace
}  // namespace isthmus
