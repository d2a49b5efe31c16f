#include "compression/tensor_survey.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <vector>

#include "compression/simd_path.h"
#include "compression/test_random.h"

namespace isthmus {
namespace {

TensorSurvey SurveyOf(const std::vector<float>& differences, int k, SimdPath path = SimdPath::kPortable) {
  const std::vector<float> zeros(differences.size());
  return std::make_unique<TensorSurveyor>(path)->Survey(differences, zeros, k);
}

std::vector<float> Drawn(int64_t count, const std::function<double()>& draw) {
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(draw());
  return values;
}

TEST(TensorSurveyTest, SamplesAreSpreadEvenlyAndBounded) {
  EXPECT_EQ(SampledBlocks(1), 1);
  EXPECT_EQ(SampledBlocks(8), 8);
  EXPECT_EQ(SampledBlocks(9), 8);
  EXPECT_EQ(SampledBlocks(512), 8);
  EXPECT_EQ(SampledBlocks(1024), 16);
  EXPECT_EQ(SampledBlocks(1 << 20), 64);
  for (int64_t blocks : {1, 7, 8, 9, 100, 1024, 16384}) {
    const int64_t sampled = SampledBlocks(blocks);
    int64_t last = -1;
    for (int64_t i = 0; i < sampled; ++i) {
      const int64_t block = SampledBlock(blocks, sampled, i);
      ASSERT_GT(block, last);
      ASSERT_LT(block, blocks);
      last = block;
    }
    EXPECT_EQ(SampledBlock(blocks, blocks, blocks - 1), blocks - 1);
  }
}

TEST(TensorSurveyTest, FiguresOfASmallTensorAreExact) {
  // Two of four are kept: round(2048 · 4 / 4096).
  const TensorSurvey survey = SurveyOf({3, -1, 4, 2}, 2048);
  EXPECT_EQ(survey.energy, 30 / 4.0);
  EXPECT_EQ(survey.captured, 25 / 30.0);
  EXPECT_DOUBLE_EQ(survey.tail, std::sqrt(12.5) / 3.5);
}

TEST(TensorSurveyTest, ZerosSurveyAsNothing) {
  const TensorSurvey survey = SurveyOf(std::vector<float>(10000), 64);
  EXPECT_EQ(survey.energy, 0);
  EXPECT_EQ(survey.captured, 0);
  EXPECT_EQ(survey.tail, 0);
}

TEST(TensorSurveyTest, ZerosAmongTheKeptDoNotCount) {
  std::vector<float> one(4096);
  one[5] = -2;
  const TensorSurvey survey = SurveyOf(one, 64);
  EXPECT_EQ(survey.tail, 1);
  EXPECT_EQ(survey.captured, 1);
  EXPECT_EQ(survey.energy, 4.0 / 4096);
}

TEST(TensorSurveyTest, BlocksThatAreNotFiniteAreLeftOut) {
  std::vector<float> values(2 * 4096, 1.0f);
  values[4] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(SurveyOf(values, 64).energy, 1);
  values[5000] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(SurveyOf(values, 64).energy, 0);
}

TEST(TensorSurveyTest, TailsOfKnownDistributionsAreAsMeasuredElsewhere) {
  TestRandom random(9);
  const auto mean = [](const std::function<double()>& draw) {  // of 64 blocks
    TensorSurvey sum;
    for (int i = 0; i < 8; ++i) {
      const TensorSurvey survey = SurveyOf(Drawn(8 * 4096, draw), 64);
      sum.tail += survey.tail / 8;
      sum.captured += survey.captured / 8;
      sum.energy += survey.energy / 8;
    }
    return sum;
  };
  const auto tail = [&](const std::function<double()>& draw) { return mean(draw).tail; };
  EXPECT_NEAR(tail([&] { return random.BoxMuller(); }), 1.006, 0.002);
  EXPECT_NEAR(tail([&] { return random.StudentT(8); }), 1.020, 0.004);
  EXPECT_NEAR(tail([&] { return random.StudentT(5); }), 1.039, 0.01);
  EXPECT_NEAR(tail([&] { return random.StudentT(3); }), 1.118, 0.03);
  const TensorSurvey normal = mean([&] { return random.BoxMuller(); });
  EXPECT_NEAR(normal.captured, 0.119, 0.002);
  EXPECT_NEAR(normal.energy, 1, 0.01);
}

TEST(TensorSurveyTest, EveryPathFindsTheSame) {
  TestRandom random(3);
  for (SimdPath path : kAllSimdPaths) {
    if (!HasSimdPath(path)) {
      std::cout << SimdPathName(path) << " is not there and was not tested\n";
      continue;
    }
    for (int64_t count : {1, 4095, 4097, 300 * 4096 + 77}) {
      const std::vector<float> values = Drawn(count, [&] { return random.Laplace(); });
      const TensorSurvey oracle = SurveyOf(values, 64), survey = SurveyOf(values, 64, path);
      EXPECT_EQ(survey.energy, oracle.energy);
      EXPECT_EQ(survey.captured, oracle.captured);
      EXPECT_EQ(survey.tail, oracle.tail);
    }
  }
}

}  // namespace
}  // namespace isthmus
