#include "daemon/training/torch_trainer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "daemon/base/random.h"
#include "daemon/training/trainer_conformance.h"

namespace isthmus {
namespace {

ModelShape TinyShape() {
  ModelShape s;
  s.vocabulary = 32;
  s.width = 16;
  s.layers = 2;
  s.heads = 4;
  s.kv_heads = 2;
  s.feed_forward = 20;
  s.context = 12;
  return s;
}

std::unique_ptr<TorchTrainer> MakeTrainer(const ModelShape& shape, InnerOptimizerOptions optimizer = {}) {
  const std::vector<float> initial = TensorTable::ForModel(shape).value().InitialValues(5);
  return TorchTrainer::Create(shape, optimizer, {}, initial).value();
}

INSTANTIATE_TEST_SUITE_P(TorchTrainer, TrainerConformance,
                         testing::Values(TrainerCase{[] { return MakeTrainer(TinyShape()); }, 3e-3}));

Batch RandomBatch(uint64_t seed, int64_t sequences, int64_t length) {
  Batch b{sequences, length, {}};
  Random random(seed);
  for (int64_t i = 0; i < sequences * (length + 1); ++i) b.tokens.push_back(random.Below(32));
  return b;
}

// Compares the gradient with central differences at `probes` values of every tensor.
void CheckGradient(const ModelShape& shape) {
  const auto trainer = MakeTrainer(shape);
  const TensorTable table = TensorTable::ForModel(shape).value();
  // Larger values than the initial ones, so that no path's gradient drowns in rounding.
  Random random(9);
  for (float& v : trainer->parameters()) v = 0.5f * v + 0.8f * static_cast<float>(random.Uniform() - 0.5);
  const Batch batch = RandomBatch(3, 3, 11);
  const std::vector<float> gradient = trainer->Gradient(batch).value();
  std::vector<float> moved(trainer->parameters().begin(), trainer->parameters().end());
  for (int t = 0; t < table.layout().tensors(); ++t) {
    for (int probe = 0; probe < 6; ++probe) {
      const int64_t i = table.layout().offset(t) + random.Below(table.layout().size(t));
      const float old = moved[i], step = 0.01f;
      const auto difference = [&](float by) {
        moved[i] = old + by;
        const double above = trainer->Evaluate(moved, batch).value();
        moved[i] = old - by;
        const double below = trainer->Evaluate(moved, batch).value();
        moved[i] = old;
        return (above - below) / (2 * by);
      };
      const double want = (4 * difference(step) - difference(2 * step)) / 3;
      EXPECT_NEAR(gradient[i], want, 1e-4 + 0.003 * std::fabs(want))
          << table.tensors()[t].name << " at " << i - table.layout().offset(t);
    }
  }
}

TEST(TorchTrainer, GradientMatchesFiniteDifferencesWithGroupedHeadsAndTiedHead) {
  CheckGradient(TinyShape());
}

TEST(TorchTrainer, GradientMatchesFiniteDifferencesWithUntiedHead) {
  ModelShape s = TinyShape();
  s.is_head_tied = false;
  s.kv_heads = 4;
  CheckGradient(s);
}

TEST(TorchTrainer, GradientMatchesFiniteDifferencesWithOneKeyValueHead) {
  ModelShape s = TinyShape();
  s.kv_heads = 1;
  s.layers = 1;
  CheckGradient(s);
}

TEST(TorchTrainer, ThePositionsAfterATokenDoNotChangeItsLoss) {
  const auto trainer = MakeTrainer(TinyShape());
  Batch whole = RandomBatch(1, 1, 12);
  Batch part{1, 7, {whole.tokens.begin(), whole.tokens.begin() + 8}};
  const double before = trainer->Evaluate(trainer->parameters(), part).value();
  // 12 tokens' mean is made of the first 7 and the last 5; only the last 5 may move.
  const double all = trainer->Evaluate(trainer->parameters(), whole).value();
  whole.tokens[12] = (whole.tokens[12] + 1) % 32;
  const double other = trainer->Evaluate(trainer->parameters(), whole).value();
  EXPECT_NE(all, other);
  EXPECT_EQ(before, trainer->Evaluate(trainer->parameters(), part).value());
}

TEST(TorchTrainer, EvaluatesALargeBatchInPiecesToTheSameMean) {
  const auto trainer = MakeTrainer(TinyShape());
  const Batch large = RandomBatch(4, 1000, 12);
  double sum = 0;
  for (int64_t s = 0; s < 1000; ++s) {
    const Batch one{1, 12, {large.tokens.begin() + s * 13, large.tokens.begin() + (s + 1) * 13}};
    sum += trainer->Evaluate(trainer->parameters(), one).value();
  }
  EXPECT_NEAR(trainer->Evaluate(trainer->parameters(), large).value(), sum / 1000, 1e-5);
}

TEST(TorchTrainer, AStepIsAdamWWithClipAndDecayOfMatricesOnly) {
  InnerOptimizerOptions options;
  options.clip_norm = 0.05;
  const ModelShape shape = TinyShape();
  const auto trainer = MakeTrainer(shape, options);
  const TensorTable table = TensorTable::ForModel(shape).value();
  std::vector<double> want(trainer->parameters().begin(), trainer->parameters().end());
  std::vector<double> m(want.size(), 0.0), v(want.size(), 0.0);
  const double rate = 0.01;
  for (int step = 1; step <= 3; ++step) {
    const Batch batch = RandomBatch(step, 2, 8);
    const std::vector<float> g = trainer->Gradient(batch).value();
    double squares = 0;
    for (float x : g) squares += static_cast<double>(x) * x;
    const auto result = trainer->Step(batch, rate);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_NEAR(result->gradient_norm, std::sqrt(squares), 1e-6);
    const double scale = std::min(1.0, 0.05 / (std::sqrt(squares) + 1e-6));
    for (int t = 0; t < table.layout().tensors(); ++t) {
      for (int64_t i = table.layout().offset(t); i < table.layout().offset(t) + table.layout().size(t); ++i) {
        m[i] = 0.9 * m[i] + 0.1 * scale * g[i];
        v[i] = 0.99 * v[i] + 0.01 * scale * g[i] * scale * g[i];
        if (table.tensors()[t].shape.size() == 2) want[i] -= rate * 0.1 * want[i];
        const double up = m[i] / (1 - std::pow(0.9, step));
        want[i] -= rate * up / (std::sqrt(v[i] / (1 - std::pow(0.99, step))) + 1e-8);
        EXPECT_NEAR(trainer->parameters()[i], want[i], 2e-5);
        want[i] = trainer->parameters()[i];
      }
    }
  }
}

TEST(TorchTrainer, LearnsARepeatingTextAlmostByHeart) {
  const auto trainer = MakeTrainer(TinyShape());
  Batch batch{4, 12, {}};
  for (int s = 0; s < 4; ++s) {
    for (int i = 0; i < 13; ++i) batch.tokens.push_back((5 * (i + s)) % 32);
  }
  for (int i = 0; i < 150; ++i) ASSERT_TRUE(trainer->Step(batch, 1e-2).ok());
  EXPECT_LT(trainer->Evaluate(trainer->parameters(), batch).value(), 0.3);
  const auto sample = trainer->Sample(trainer->parameters(), {0, 5, 10, 15}, 4, 0, 1);
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_EQ(*sample, (std::vector<int32_t>{20, 25, 30, 3}));
}

TEST(TorchTrainer, RefusesSequencesLongerThanTheContext) {
  const auto trainer = MakeTrainer(TinyShape());
  const absl::Status status = trainer->Step(RandomBatch(1, 1, 13), 1e-3).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("13 tokens, the context has 12"));
}

TEST(TorchTrainer, RefusesImpossibleOptions) {
  const ModelShape shape = TinyShape();
  const std::vector<float> initial = TensorTable::ForModel(shape).value().InitialValues(5);
  InnerOptimizerOptions optimizer;
  optimizer.beta2 = 1;
  EXPECT_FALSE(TorchTrainer::Create(shape, optimizer, {}, initial).ok());
  EXPECT_FALSE(TorchTrainer::Create(shape, {}, TorchOptions{0}, initial).ok());
  EXPECT_FALSE(TorchTrainer::Create(shape, {}, {}, absl::MakeConstSpan(initial).subspan(1)).ok());
}

}  // namespace
}  // namespace isthmus
