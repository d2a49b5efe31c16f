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
  EXPECT_EQ(other->outer_rate, 1) << "600 inner steps";
}

TEST_F(LearningRunTest, SparseFramesAreSmallAndTheLastIsDense) {
  const auto result = RunLearningCase(setup_, CaseOf(LearningForm::kSparse));
  ASSERT_TRUE(result.ok());
  EXPECT_LT(result->up_bytes, 0.15);
  EXPECT_GT(result->last_up_bytes, 1);
  LearningCase c = CaseOf(LearningForm::kSparse);
  c.last_codec.clear();
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

TEST_F(LearningRunTest, ASeparateResidualStillConvergesAndDiffersFromCarrying) {
  LearningCase c = CaseOf(LearningForm::kSparse);
  const double carried = RunLearningCase(setup_, c)->loss;
  c.feedback = LearningFeedback::kSeparate;
  for (double beta : {0.95, 1.0}) {
    c.carry_decay = beta;
    const auto result = RunLearningCase(setup_, c);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_LT(result->loss, 0.005);
    EXPECT_NE(result->loss, carried);
  }
  c.outcome_delay_steps = 2;
  EXPECT_EQ(RunLearningCase(setup_, c).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(LearningRunTest, WithALosslessCodecBothFormsAreTheDenseAverage) {
  const double dense = RunLearningCase(setup_, CaseOf(LearningForm::kDense))->loss;
  LearningCase c = CaseOf(LearningForm::kSparse);
  c.codec = "dense(bits=24)";
  c.outer_rate = 1;
  EXPECT_EQ(RunLearningCase(setup_, c)->loss, dense);
  c.feedback = LearningFeedback::kSeparate;
  EXPECT_NEAR(RunLearningCase(setup_, c)->loss, dense, 1e-6);
}

TEST_F(LearningRunTest, SettingsOfTheExchangeChangeTheOutcomeAndStillConverge) {
  const LearningCase nominal = CaseOf(LearningForm::kSparse);
  const double loss = RunLearningCase(setup_, nominal)->loss;
  std::vector<LearningCase> cases(6, nominal);
  cases[0].averaging = Averaging::kContributors;
  cases[1].outer_momentum = 0.5;
  cases[1].outer_rate = 0.5;
  cases[2].carry_decay = 0.9;
  cases[3].down_kept_per_block = 1024;
  cases[4].last_codec = "dense(bits=24)|zstd(2)";
  cases[5].slowness = {1, 1, 2.5};
  cases[5].weights = LearningWeights::kTokens;
  for (const LearningCase& c : cases) {
    const auto result = RunLearningCase(setup_, c);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_LT(result->loss, 0.01) << LearningCaseKey(c);
    if (c.last_codec == nominal.last_codec) {
      EXPECT_NE(result->loss, loss) << LearningCaseKey(c);
    } else {
      EXPECT_EQ(result->loss, loss) << "how hard zstd tries changes bytes alone";
    }
  }
}

TEST_F(LearningRunTest, ARecompressedUpdateIsSmallerAndItsLastIsWhole) {
  LearningCase c = CaseOf(LearningForm::kSparse);
  const auto exact = RunLearningCase(setup_, c);
  c.down_kept_per_block = 256;
  const auto again = RunLearningCase(setup_, c);
  ASSERT_TRUE(exact.ok() && again.ok());
  EXPECT_LT(again->down_bytes, 0.5 * exact->down_bytes);
  EXPECT_GT(again->last_down_bytes, 1);
}

TEST_F(LearningRunTest, BytesOfTheRunAreThoseOfItsRounds) {
  const auto result = RunLearningCase(setup_, CaseOf(LearningForm::kSparse));
  ASSERT_TRUE(result.ok());
  EXPECT_DOUBLE_EQ(result->all_up_bytes(), 19 * result->up_bytes + result->last_up_bytes);
  EXPECT_DOUBLE_EQ(result->all_down_bytes(), 19 * result->down_bytes + result->last_down_bytes);
  const auto synchronous = RunLearningCase(setup_, CaseOf(LearningForm::kSynchronous));
  EXPECT_DOUBLE_EQ(synchronous->all_up_bytes(), 400);  // 100 steps of 4 bytes
}

TEST_F(LearningRunTest, DifferencesAreShownBeforeTheyAreEncoded) {
  int64_t shown = 0;
  setup_.on_difference = [&](int64_t round, int64_t site, absl::Span<const float> difference) {
    EXPECT_EQ(difference.size(), 6000);
    EXPECT_EQ(round * 3 + site, shown++);
    return absl::OkStatus();
  };
  ASSERT_TRUE(RunLearningCase(setup_, CaseOf(LearningForm::kSparse)).ok());
  EXPECT_EQ(shown, 60);
  setup_.on_difference = [](int64_t, int64_t, absl::Span<const float>) {
    return absl::UnavailableError("disk full");
  };
  EXPECT_EQ(RunLearningCase(setup_, CaseOf(LearningForm::kSparse)).status().code(),
            absl::StatusCode::kUnavailable);
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
  c.last_codec.clear();
  c.slowness = {1, 3};
  c.outcome_delay_steps = 2;
  c.weights = LearningWeights::kTokens;
  EXPECT_EQ(
      LearningCaseKey(c),
      "sparse rate=0.003 seed=0 tokens=921600 sites=3 H=15 batch=4 slowness=1,3 k=64 alpha=1.5 no-flush "
      "delay=2 weights=tokens");
  LearningCase d;
  d.codec = "topk(k=64)";
  d.outer_momentum = 0.5;
  d.feedback = LearningFeedback::kSeparate;
  d.carry_decay = 0.95;
  d.last_codec = "dense(bits=8)";
  d.down_kept_per_block = 128;
  d.averaging = Averaging::kContributors;
  d.weights = LearningWeights::kEqual;
  EXPECT_EQ(LearningCaseKey(d),
            "sparse rate=0.003 seed=0 tokens=921600 sites=3 H=15 batch=4 codec=topk(k=64) mu=0.5 separate "
            "beta=0.95 last=dense(bits=8) down=128,1 weights=equal contributors");
}

}  // namespace
}  // namespace isthmus
