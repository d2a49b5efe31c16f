#include "daemon/app/train_bench.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace isthmus {
namespace {

// Each step takes a quarter of a second of the fake clock and a thousandth off the loss.
class ClockworkTrainer : public Trainer {
 public:
  explicit ClockworkTrainer(FakeClock* clock) : clock_(clock) {}

  absl::Span<float> parameters() override { return absl::MakeSpan(parameters_); }
  absl::StatusOr<StepResult> Step(const Batch& batch, double) override {
    clock_->Advance(absl::Milliseconds(250));
    if (steps == fail_at) return absl::DataLossError("NaN");
    ++steps;
    sequences.push_back(batch.tokens[0]);
    return StepResult{2.0 - 0.001 * steps, 1.0, batch.sequences * batch.length};
  }
  absl::StatusOr<double> Evaluate(absl::Span<const float>, const Batch&) override { return 0.0; }
  void ResetMoments() override {}
  InnerMoments ExportMoments() const override { return {}; }
  absl::Status ImportMoments(const InnerMoments&) override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<int32_t>> Sample(absl::Span<const float>, absl::Span<const int32_t>, int64_t,
                                              double, uint64_t) override {
    return std::vector<int32_t>();
  }

  int steps = 0, fail_at = -1;
  std::vector<int32_t> sequences;

 private:
  FakeClock* const clock_;
  std::vector<float> parameters_;
};

// `count` sequences of eight tokens, each its own index.
class CountingData : public TrainingData {
 public:
  explicit CountingData(int64_t count) : count_(count) {}

  int64_t training_sequences() const override { return count_; }
  Digest digest() const override { return {}; }
  absl::StatusOr<Batch> TrainingBatch(absl::Span<const int64_t> sequences) const override {
    Batch batch{static_cast<int64_t>(sequences.size()), 8, {}};
    for (int64_t sequence : sequences)
      batch.tokens.insert(batch.tokens.end(), 9, static_cast<int32_t>(sequence));
    return batch;
  }
  std::vector<Batch> HeldOutBatches(bool) const override { return {}; }
  absl::Status CheckUnchanged() const override { return absl::OkStatus(); }

 private:
  const int64_t count_;
};

TEST(TrainBench, CountsStepsAndTokensOfTheTimeAfterTheFirstStep) {
  FakeClock clock;
  ClockworkTrainer trainer(&clock);
  const auto result = MeasureTraining(&trainer, CountingData(100), clock, 4, 1e-3, absl::Seconds(2));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->steps, 8);
  EXPECT_EQ(result->tokens, 8 * 4 * 8);
  EXPECT_DOUBLE_EQ(result->seconds, 2.0);
  EXPECT_DOUBLE_EQ(result->steps_per_second(), 4.0);
  EXPECT_DOUBLE_EQ(result->tokens_per_second(), 128.0);
  EXPECT_DOUBLE_EQ(result->first_loss, 1.999);
  EXPECT_DOUBLE_EQ(result->last_loss, 1.991);
}

TEST(TrainBench, GoesRoundWhenTheDataAreShort) {
  FakeClock clock;
  ClockworkTrainer trainer(&clock);
  ASSERT_TRUE(MeasureTraining(&trainer, CountingData(3), clock, 2, 1e-3, absl::Milliseconds(500)).ok());
  EXPECT_EQ(trainer.sequences, (std::vector<int32_t>{0, 2, 1}));
}

TEST(TrainBench, GivesTheTrainersErrorAndRefusesEmptyData) {
  FakeClock clock;
  ClockworkTrainer trainer(&clock);
  trainer.fail_at = 2;
  EXPECT_EQ(MeasureTraining(&trainer, CountingData(3), clock, 1, 1e-3, absl::Seconds(9)).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(MeasureTraining(&trainer, CountingData(0), clock, 1, 1e-3, absl::Seconds(1)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(TrainBench, JsonHasTheFiguresOfTheTable) {
  TrainBenchResult result{10, 5120, 2.5, 5.5, 4.25};
  const auto json = nlohmann::json::parse(TrainBenchJson(result));
  EXPECT_EQ(json["steps"], 10);
  EXPECT_EQ(json["tokens_per_second"], 2048.0);
  EXPECT_EQ(json["last_loss"], 4.25);
  EXPECT_EQ(TrainBenchTable(result),
            "steps  seconds  steps/s  tokens/s  loss before  loss after\n"
            "   10     2.50     4.00      2048       5.5000      4.2500\n");
}

}  // namespace
}  // namespace isthmus
