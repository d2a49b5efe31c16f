#include "daemon/training/llama_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "daemon/base/random.h"

namespace isthmus {
namespace {

std::vector<float> Values(uint64_t seed, int64_t n, float scale = 1.0f) {
  Random random(seed);
  std::vector<float> v(n);
  for (float& x : v) x = scale * static_cast<float>(2 * random.Uniform() - 1);
  return v;
}

double Silu(double g) { return g / (1 + std::exp(-g)); }

TEST(LlamaKernels, RmsNormScalesEachRowToRootMeanSquareOne) {
  const std::vector<float> x = Values(1, 2 * 37, 3), weight = Values(2, 37);
  std::vector<float> out(x.size()), inverse(2);
  RmsNorm(x.data(), weight.data(), 2, 37, out.data(), inverse.data());
  for (int n = 0; n < 2; ++n) {
    double squares = 0;
    for (int j = 0; j < 37; ++j) squares += static_cast<double>(x[n * 37 + j]) * x[n * 37 + j];
    const double r = 1 / std::sqrt(squares / 37 + 1e-5);
    EXPECT_NEAR(inverse[n], r, 1e-6);
    for (int j = 0; j < 37; ++j) EXPECT_NEAR(out[n * 37 + j], x[n * 37 + j] * r * weight[j], 1e-6);
  }
}

TEST(LlamaKernels, RotatingForthAndBackGivesTheValuesBack) {
  const int64_t rows = 6, heads = 2, width = 8, stride = 20, positions = 3;
  std::vector<float> cosines, sines;
  for (int i = 0; i < positions * width / 2; ++i) {
    cosines.push_back(std::cos(0.3f * i));
    sines.push_back(std::sin(0.3f * i));
  }
  const std::vector<float> before = Values(3, rows * stride);
  std::vector<float> v = before;
  Rotate(v.data(), rows, stride, heads, width, positions, cosines.data(), sines.data(), false);
  // Row 4 has position 1; value 2 of head 1 pairs with value 6.
  const int64_t at = 4 * stride + width + 2;
  EXPECT_NEAR(v[at], before[at] * cosines[4 + 2] - before[at + 4] * sines[4 + 2], 1e-6);
  EXPECT_NEAR(v[at + 4], before[at + 4] * cosines[4 + 2] + before[at] * sines[4 + 2], 1e-6);
  EXPECT_EQ(v[4 * stride + 16], before[4 * stride + 16]);  // past the heads
  Rotate(v.data(), rows, stride, heads, width, positions, cosines.data(), sines.data(), true);
  for (size_t i = 0; i < v.size(); ++i) EXPECT_NEAR(v[i], before[i], 1e-6);
}

TEST(LlamaKernels, SwiGluAndItsGradientMatchTheFormula) {
  const int64_t width = 19;
  const std::vector<float> x = Values(4, 2 * width, 8), dout = Values(5, width);
  std::vector<float> out(width), dx(2 * width);
  SwiGlu(x.data(), 1, width, out.data());
  SwiGluBackward(x.data(), dout.data(), 1, width, dx.data());
  for (int j = 0; j < width; ++j) {
    EXPECT_NEAR(out[j], Silu(x[j]) * x[width + j], 1e-5);
    const double slope = (Silu(x[j] + 1e-5) - Silu(x[j] - 1e-5)) / 2e-5;
    EXPECT_NEAR(dx[j], dout[j] * x[width + j] * slope, 1e-5);
    EXPECT_NEAR(dx[width + j], dout[j] * Silu(x[j]), 1e-5);
  }
}

TEST(LlamaKernels, SwiGluOfExtremeValuesStaysFinite) {
  const std::vector<float> x = {-1e30f, 1e30f, -200.0f, 200.0f, 1.0f, 1.0f, 1.0f, 1.0f};
  std::vector<float> out(4);
  SwiGlu(x.data(), 1, 4, out.data());
  EXPECT_NEAR(out[2], 0, 1e-30);
  EXPECT_FLOAT_EQ(out[1], 1e30f);
  EXPECT_FLOAT_EQ(out[3], 200.0f);
}

TEST(LlamaKernels, CausalSoftmaxSeesNothingAfterItsRow) {
  const int64_t n = 21;
  const std::vector<float> before = Values(6, n * n, 30);
  std::vector<float> p = before;
  CausalSoftmax(p.data(), n, 0.5f);
  for (int i = 0; i < n; ++i) {
    double sum = 0;
    for (int j = 0; j <= i; ++j) sum += std::exp(0.5 * (before[i * n + j] - before[i * n]));
    for (int j = 0; j < n; ++j) {
      const double want = j <= i ? std::exp(0.5 * (before[i * n + j] - before[i * n])) / sum : 0;
      EXPECT_NEAR(p[i * n + j], want, 2e-6);
    }
  }
  std::vector<float> g = Values(7, n * n);
  const std::vector<float> dp = g;
  CausalSoftmaxBackward(p.data(), g.data(), n, 0.5f);
  for (int i = 0; i < n; ++i) {
    double dot = 0;
    for (int j = 0; j <= i; ++j) dot += static_cast<double>(p[i * n + j]) * dp[i * n + j];
    for (int j = 0; j < n; ++j) {
      EXPECT_NEAR(g[i * n + j], j <= i ? 0.5 * p[i * n + j] * (dp[i * n + j] - dot) : 0, 1e-6);
    }
  }
}

TEST(LlamaKernels, CrossEntropyGivesLossAndGradient) {
  const int64_t rows = 3, vocabulary = 33;
  const std::vector<float> before = Values(8, rows * vocabulary, 5);
  std::vector<float> logits = before;
  const std::vector<int32_t> targets = {0, 32, 7};
  const double loss = CrossEntropy(logits.data(), targets.data(), rows, vocabulary, 0.25f);
  double want = 0;
  for (int n = 0; n < rows; ++n) {
    double sum = 0;
    for (int j = 0; j < vocabulary; ++j) sum += std::exp(static_cast<double>(before[n * vocabulary + j]));
    want += std::log(sum) - before[n * vocabulary + targets[n]];
    for (int j = 0; j < vocabulary; ++j) {
      const double p = std::exp(static_cast<double>(before[n * vocabulary + j])) / sum;
      EXPECT_NEAR(logits[n * vocabulary + j], 0.25 * (p - (j == targets[n] ? 1 : 0)), 1e-6);
    }
  }
  EXPECT_NEAR(loss, want, 1e-5);
}

TEST(LlamaKernels, SquaredNormIsSummedInDouble) {
  const std::vector<float> v(1000003, 0.1f);
  EXPECT_NEAR(SquaredNorm(v.data(), v.size()), 1000003 * static_cast<double>(0.1f) * 0.1f, 1e-6);
}

TEST(LlamaKernels, NaNComesThroughEveryLoop) {
  std::vector<float> v = {1.0f, NAN, 2.0f, 3.0f};
  EXPECT_TRUE(std::isnan(SquaredNorm(v.data(), 4)));
  std::vector<float> logits = v;
  const std::vector<int32_t> target = {0};
  EXPECT_TRUE(std::isnan(CrossEntropy(logits.data(), target.data(), 1, 4, 1.0f)));
  std::vector<float> out(4), inverse(1);
  const std::vector<float> ones(4, 1.0f);
  RmsNorm(v.data(), ones.data(), 1, 4, out.data(), inverse.data());
  EXPECT_TRUE(std::isnan(out[0]));
  SwiGlu(v.data(), 1, 2, out.data());
  EXPECT_TRUE(std::isnan(out[1]));
}

}  // namespace
}  // namespace isthmus
