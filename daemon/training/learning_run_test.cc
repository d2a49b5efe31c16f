#include "daemon/training/learning_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "daemon/training/token_file.h"
#include "daemon/training/toy_trainer.h"

namespace isthmus {
namespace {

// The toy problem over a small file of 32 different bytes.
class LearningRunTest : public testing::Test {
 protected:
  LearningRunTest() {
    const std::string path = testing::TempDir() + "/learning_run_test.tokens";
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    for (int i = 0; i < 20000; ++i) out.put(static_cast<char>(i * i % 31));
    out.close();
    TokenFileOptions options;
    options.vocabulary = 32;
    options.context = 8;
    data_ = TokenFile::Open(path, options).value();
    setup_.table = &table_;
    setup_.data = data_.get();
    setup_.ops = ops_.get();
    setup_.held_out = data_->HeldOutBatches(true);
    setup_.held_out_subset = data_->HeldOutBatches(false);
    setup_.make_trainer =
        [this](absl::Span<const float> initial) -> absl::StatusOr<std::unique_ptr<Trainer>> {
      ToyOptions toy;
      toy.vocabulary = 32;
      return std::unique_ptr<Trainer>(ToyTrainer::Create(table_, toy, initial).value());
    };
  }

  static LearningCase CaseOf(LearningForm form) {
    LearningCase c;
    c.form = form;
    c.peak_rate = 0.05;
    c.sites = 3;
    c.inner_steps = 5;
    c.sequences = 2;
    c.tokens = 20 * 3 * 5 * 2 * 8;
    return c;
  }

  const TensorTable table_ = ToyTensorTable(6000);
  std::unique_ptr<TokenFile> data_;
  std::unique_ptr<DeviceOps> ops_ = MakeCpuDeviceOps();
  LearningSetup setup_;
};

TEST_F(LearningRunTest, EveryFormLearnsTheToyProblem) {
  for (LearningForm form : {LearningForm::kSynchronous, LearningForm::kDense, LearningForm::kDenseNesterov,
                            LearningForm::kSparse}) {
    const auto result = RunLearningCase(setup_, CaseOf(form));
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->curve.size(), 3) << LearningFormName(form);
    EXPECT_LT(result->loss, result->curve[0]) << LearningFormName(form);
    EXPECT_LT(result->loss, 0.005) << LearningFormName(form);
    EXPECT_EQ(result->tokens, 4800) << LearningFormName(form);
    EXPECT_EQ(result->parameters, 6000);
  }
}

TEST_F(LearningRunTest, TheSameCaseGivesTheSameBits) {
  const auto a = RunLearningCase(setup_, CaseOf(LearningForm::kSparse));
  const auto b = RunLearningCase(setup_, CaseOf(LearningForm::kSparse));
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->loss, b->loss);
  EXPECT_EQ(a->up_bytes, b->up_bytes);
  LearningCase other = CaseOf(LearningForm::kSparse);
  other.seed = 1;
  EXPECT_NE(RunLearningCase(setup_, other)->loss, a->loss);
}

TEST_F(LearningRunTest, SettingsFollowFromTheNumberOfRounds) {
  const auto result = RunLearningCase(setup_, CaseOf(LearningForm::kSparse));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->rounds, 20);
  EXPECT_EQ(result->steps, 100);
  EXPECT_EQ(result->kept_per_block, 512);
  EXPECT_EQ(result->outer_rate, 1);
  LearningCase longer = CaseOf(LearningForm::kSparse);
  longer.tokens *= 6;
  const auto other = RunLearningCase(setup_, longer);
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->kept_per_block, 128);
  EXPECT_EQ(other->outer_rate, 1.5);
}

TEST_F(LearningRunTest, SparseFramesAreSmallAndTheLastIsDense) {
  const auto result = RunLearningCase(setup_, CaseOf(LearningForm::kSparse));
  ASSERT_TRUE(result.ok());
  EXPECT_LT(result->up_bytes, 0.15);
  EXPECT_GT(result->last_up_bytes, 1);
  LearningCase c = CaseOf(LearningForm::kSparse);
  c.is_last_round_dense = false;
  EXPECT_LT(RunLearningCase(setup_, c)->last_up_bytes, 0.15);
}

TEST_F(LearningRunTest, ASlowSiteTakesFewerSteps) {
  LearningCase c = CaseOf(LearningForm::kSparse);
  c.slowness = {1, 1, 2.5};  // 5 + 5 + 2 steps a round
  const auto result = RunLearningCase(setup_, c);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->rounds, 25);
  EXPECT_EQ(result->tokens, 25 * 12 * 16);
  EXPECT_LT(result->loss, 0.005);
}

TEST_F(LearningRunTest, ADelayedOutcomeStillConverges) {
  for (LearningForm form : {LearningForm::kDense, LearningForm::kSparse}) {
    LearningCase c = CaseOf(form);
    c.outcome_delay_steps = 2;
    const auto result = RunLearningCase(setup_, c);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_LT(result->loss, 0.005);
    EXPECT_NE(result->loss, RunLearningCase(setup_, CaseOf(form))->loss);
  }
}

TEST_F(LearningRunTest, OneSiteWithDenseExchangeIsThatSiteAlone) {
  LearningCase dense = CaseOf(LearningForm::kDense);
  LearningCase alone = CaseOf(LearningForm::kSynchronous);
  dense.sites = alone.sites = 1;
  dense.tokens = alone.tokens = 100 * 2 * 8;
  // 24-bit mantissas round; the paths agree closely, not bit for bit.
  EXPECT_NEAR(RunLearningCase(setup_, dense)->loss, RunLearningCase(setup_, alone)->loss, 1e-6);
}

TEST_F(LearningRunTest, ADivergedRunIsDataLossAndNamesTheCase) {
  LearningCase c = CaseOf(LearningForm::kSynchronous);
  c.peak_rate = 1e300;
  const absl::Status status = RunLearningCase(setup_, c).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("synchronous rate=1e+300"));
}

TEST_F(LearningRunTest, RefusesImpossibleCases) {
  LearningCase c = CaseOf(LearningForm::kDense);
  c.sites = 0;
  EXPECT_EQ(RunLearningCase(setup_, c).status().code(), absl::StatusCode::kInvalidArgument);
  c = CaseOf(LearningForm::kDense);
  c.slowness = {1, 2};
  EXPECT_EQ(RunLearningCase(setup_, c).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(LearningCaseKey, NamesWhatDiffersFromTheDefault) {
  LearningCase c;
  EXPECT_EQ(LearningCaseKey(c), "sparse rate=0.003 seed=0 tokens=921600 sites=3 H=15 batch=4");
  c.kept_per_block = 64;
  c.outer_rate = 1.5;
  c.is_last_round_dense = false;
  c.slowness = {1, 3};
  c.outcome_delay_steps = 2;
  c.is_weighted_by_steps = true;
  EXPECT_EQ(
      LearningCaseKey(c),
      "sparse rate=0.003 seed=0 tokens=921600 sites=3 H=15 batch=4 slowness=1,3 k=64 alpha=1.5 no-flush "
      "delay=2 weights=steps");
}

}  // namespace
}  // namespace isthmus
