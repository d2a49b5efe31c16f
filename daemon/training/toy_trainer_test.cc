#include "daemon/training/toy_trainer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "daemon/base/random.h"
#include "daemon/training/trainer_conformance.h"

namespace isthmus {
namespace {

std::unique_ptr<ToyTrainer> MakeToy(ToyOptions options = {}, int64_t values = 50) {
  options.vocabulary = 32;
  const TensorTable table = ToyTensorTable(values);
  return ToyTrainer::Create(table, options, table.InitialValues(0)).value();
}

INSTANTIATE_TEST_SUITE_P(ToyTrainer, TrainerConformance,
                         testing::Values(TrainerCase{[] { return MakeToy(); }, 0.1}));

Batch BatchOf(int32_t token) { return Batch{1, 4, {token, 1, 2, 3, 4}}; }

TEST(ToyTrainer, ConvergesToTheKnownOptimum) {
  const auto toy = MakeToy();
  for (int i = 0; i < 400; ++i) ASSERT_TRUE(toy->Step(BatchOf(i % 32), 0.1).ok());
  for (int i = 0; i < 400; ++i) ASSERT_TRUE(toy->Step(BatchOf(i % 32), 0.02).ok());
  EXPECT_LT(toy->Evaluate(toy->parameters(), BatchOf(0)).value(), 0.001);
  for (size_t i = 0; i < toy->optimum().size(); ++i) {
    EXPECT_NEAR(toy->parameters()[i], toy->optimum()[i], 0.08);
  }
}

TEST(ToyTrainer, InnerSumIsExactlyWhatTheStepsDid) {
  const auto toy = MakeToy();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(toy->Step(BatchOf(i % 32), 0.1).ok());
  EXPECT_TRUE(toy->is_exact());
  for (size_t i = 0; i < toy->optimum().size(); ++i) {
    EXPECT_EQ(toy->inner_sum()[i], 0.0 - toy->parameters()[i]);
    EXPECT_EQ(std::nearbyint(toy->inner_sum()[i] * 4096), toy->inner_sum()[i] * 4096);
  }
}

TEST(ToyTrainer, SaysWhenAStepHadToRound) {
  const auto toy = MakeToy();
  toy->parameters()[0] = 1.0f + 0x1p-23f;  // crossing 1 downwards is exact, crossing 2 upwards is not
  ASSERT_TRUE(toy->Step(BatchOf(1), 0.1).ok());
  EXPECT_TRUE(toy->is_exact());
  toy->parameters()[1] = 8388608.0f;
  ASSERT_TRUE(toy->Step(BatchOf(1), 0.1).ok());
  EXPECT_FALSE(toy->is_exact());
}

TEST(ToyTrainer, ShiftedSitesMeetAtTheCommonOptimumOnAverage) {
  const int64_t values = 4;
  std::vector<double> mean(values, 0.0);
  const int sites = 200;
  const auto common = MakeToy({}, values);
  for (int s = 0; s < sites; ++s) {
    ToyOptions options;
    options.site_shift = 0.25;
    options.site_seed = s;
    options.noise = 0;
    const auto toy = MakeToy(options, values);
    EXPECT_EQ(toy->optimum(), common->optimum());
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(toy->Step(BatchOf(1), 0.25).ok());
    for (int i = 0; i < values; ++i) mean[i] += toy->parameters()[i] / sites;
  }
  for (int i = 0; i < values; ++i) EXPECT_NEAR(mean[i], common->optimum()[i], 0.05);
}

TEST(ToyTrainer, RefusesInitialValuesThatDoNotFit) {
  const TensorTable table = ToyTensorTable(8);
  EXPECT_EQ(ToyTrainer::Create(table, {}, std::vector<float>(7)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace isthmus
