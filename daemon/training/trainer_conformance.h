// What every Trainer must do, as a suite to be instantiated for each implementation.
#ifndef ISTHMUS_DAEMON_TRAINING_TRAINER_CONFORMANCE_H_
#define ISTHMUS_DAEMON_TRAINING_TRAINER_CONFORMANCE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "daemon/base/random.h"
#include "daemon/training/trainer.h"

namespace isthmus {

// A fresh trainer with a vocabulary of 32 that takes sequences of 8 tokens; always the same one.
using TrainerFactory = std::function<std::unique_ptr<Trainer>()>;

struct TrainerCase {
  TrainerFactory make;
  double rate;  // one at which the trainer learns
};

class TrainerConformance : public testing::TestWithParam<TrainerCase> {
 protected:
  static Batch MakeBatch(uint64_t seed, int64_t sequences = 2, int64_t length = 8) {
    Batch b{sequences, length, {}};
    Random random(seed);
    for (int64_t i = 0; i < sequences * (length + 1); ++i) b.tokens.push_back(random.Below(32));
    return b;
  }
  static std::vector<float> Copy(Trainer* t) { return {t->parameters().begin(), t->parameters().end()}; }

  std::unique_ptr<Trainer> trainer_ = GetParam().make();
  double rate_ = GetParam().rate;
};

TEST_P(TrainerConformance, LossFallsWhenTheSameBatchIsStepped) {
  const Batch batch = MakeBatch(1);
  const double first = trainer_->Evaluate(trainer_->parameters(), batch).value();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(trainer_->Step(batch, rate_).ok());
  EXPECT_LT(trainer_->Evaluate(trainer_->parameters(), batch).value(), 0.9 * first);
}

TEST_P(TrainerConformance, StepReportsTheLossBeforeItAndItsTokens) {
  const Batch batch = MakeBatch(2);
  const double before = trainer_->Evaluate(trainer_->parameters(), batch).value();
  const auto result = trainer_->Step(batch, rate_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NEAR(result->loss, before, 1e-5);
  EXPECT_EQ(result->tokens, 16);
  EXPECT_GT(result->gradient_norm, 0);
}

TEST_P(TrainerConformance, TheSameStepsGiveTheSameBits) {
  const auto other = GetParam().make();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(trainer_->Step(MakeBatch(i), rate_).ok());
    ASSERT_TRUE(other->Step(MakeBatch(i), rate_).ok());
  }
  EXPECT_EQ(Copy(trainer_.get()), Copy(other.get()));
}

TEST_P(TrainerConformance, EvaluatingOtherParametersLeavesTheLiveOnesAlone) {
  ASSERT_TRUE(trainer_->Step(MakeBatch(1), rate_).ok());
  const std::vector<float> live = Copy(trainer_.get());
  std::vector<float> other = live;
  for (float& v : other) v *= 0.5f;
  const double of_other = trainer_->Evaluate(other, MakeBatch(2)).value();
  const double of_live = trainer_->Evaluate(live, MakeBatch(2)).value();
  EXPECT_NE(of_other, of_live);
  EXPECT_EQ(Copy(trainer_.get()), live);
  // The next step is as if nobody had looked.
  const auto other_trainer = GetParam().make();
  ASSERT_TRUE(other_trainer->Step(MakeBatch(1), rate_).ok());
  ASSERT_TRUE(other_trainer->Step(MakeBatch(3), rate_).ok());
  ASSERT_TRUE(trainer_->Step(MakeBatch(3), rate_).ok());
  EXPECT_EQ(Copy(trainer_.get()), Copy(other_trainer.get()));
}

TEST_P(TrainerConformance, WritingTheLiveParametersIsSeenByTheNextCall) {
  const Batch batch = MakeBatch(1);
  std::vector<float> halved = Copy(trainer_.get());
  for (float& v : halved) v = 0.5f * v + 0.125f;
  std::copy(halved.begin(), halved.end(), trainer_->parameters().begin());
  const double want = trainer_->Evaluate(halved, batch).value();
  EXPECT_NEAR(trainer_->Step(batch, rate_).value().loss, want, 1e-5);
}

TEST_P(TrainerConformance, BatchesOfAnotherCountOfSequencesFit) {
  EXPECT_TRUE(trainer_->Step(MakeBatch(1, 3), rate_).ok());
  EXPECT_TRUE(trainer_->Step(MakeBatch(1, 1), rate_).ok());
  EXPECT_TRUE(trainer_->Evaluate(trainer_->parameters(), MakeBatch(1, 5)).ok());
  EXPECT_TRUE(trainer_->Evaluate(trainer_->parameters(), MakeBatch(1, 2, 5)).ok());
}

TEST_P(TrainerConformance, RefusesTokensBeyondTheVocabularyAndWrongShapes) {
  Batch batch = MakeBatch(1);
  batch.tokens[10] = 32;
  const absl::Status status = trainer_->Step(batch, rate_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("token 32 in row 1 at 1"));
  batch = MakeBatch(1);
  batch.tokens[0] = -1;
  EXPECT_EQ(trainer_->Step(batch, rate_).status().code(), absl::StatusCode::kInvalidArgument);
  batch = MakeBatch(1);
  batch.tokens.pop_back();
  EXPECT_EQ(trainer_->Step(batch, rate_).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(trainer_->Evaluate(trainer_->parameters(), Batch()).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(trainer_->Evaluate(trainer_->parameters().subspan(1), MakeBatch(1)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(TrainerConformance, NaNParametersGiveDataLossAndLeaveTheMomentsAlone) {
  ASSERT_TRUE(trainer_->Step(MakeBatch(1), rate_).ok());
  const InnerMoments before = trainer_->ExportMoments();
  for (float& v : trainer_->parameters()) v = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(trainer_->Step(MakeBatch(2), rate_).status().code(), absl::StatusCode::kDataLoss);
  const InnerMoments after = trainer_->ExportMoments();
  EXPECT_EQ(after.steps, before.steps);
  EXPECT_EQ(after.first, before.first);
  EXPECT_EQ(after.second, before.second);
}

TEST_P(TrainerConformance, ExportedMomentsCarryTrainingOnElsewhere) {
  ASSERT_TRUE(trainer_->Step(MakeBatch(1), rate_).ok());
  const InnerMoments moments = trainer_->ExportMoments();
  EXPECT_EQ(moments.steps, 1);
  const auto other = GetParam().make();
  const std::vector<float> live = Copy(trainer_.get());
  std::copy(live.begin(), live.end(), other->parameters().begin());
  ASSERT_TRUE(other->ImportMoments(moments).ok());
  ASSERT_TRUE(trainer_->Step(MakeBatch(2), rate_).ok());
  ASSERT_TRUE(other->Step(MakeBatch(2), rate_).ok());
  EXPECT_EQ(Copy(trainer_.get()), Copy(other.get()));
}

TEST_P(TrainerConformance, ResetMomentsForgetsTheSteps) {
  ASSERT_TRUE(trainer_->Step(MakeBatch(1), rate_).ok());
  trainer_->ResetMoments();
  EXPECT_EQ(trainer_->ExportMoments().steps, 0);
}

TEST_P(TrainerConformance, ImportRefusesMomentsThatDoNotFit) {
  ASSERT_TRUE(trainer_->Step(MakeBatch(1), rate_).ok());
  InnerMoments moments = trainer_->ExportMoments();
  moments.first.pop_back();
  EXPECT_EQ(trainer_->ImportMoments(moments).code(), absl::StatusCode::kInvalidArgument);
  moments = trainer_->ExportMoments();
  moments.second[0] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(trainer_->ImportMoments(moments).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(trainer_->ExportMoments().steps, 1);
}

TEST_P(TrainerConformance, SamplesAreSeededAndInsideTheVocabulary) {
  const std::vector<int32_t> prompt = {3, 1, 4};
  const auto a = trainer_->Sample(trainer_->parameters(), prompt, 20, 0.8, 5);
  ASSERT_TRUE(a.ok()) << a.status();
  EXPECT_EQ(a->size(), 20);
  for (int32_t token : *a) EXPECT_TRUE(token >= 0 && token < 32);
  EXPECT_EQ(*a, trainer_->Sample(trainer_->parameters(), prompt, 20, 0.8, 5).value());
  EXPECT_NE(*a, trainer_->Sample(trainer_->parameters(), prompt, 20, 0.8, 6).value());
  EXPECT_EQ(trainer_->Sample(trainer_->parameters(), {}, 20, 0.8, 5).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_TRAINER_CONFORMANCE_H_
