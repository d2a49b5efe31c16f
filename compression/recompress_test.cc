#include "compression/recompress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "compression/codec.h"
#include "compression/fake_codecs.h"
#include "compression/reference_sum.h"
#include "compression/test_random.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

const Layout& TestLayout() {
  static const auto* const layout = new Layout({5000, 1, 4096, 77}, 9);
  return *layout;
}

// What applying an update subtracts before the outer rate, by the formula, value by value.
std::vector<float> Means(const Layout& layout, const Update& update) {
  std::vector<float> means(layout.total());
  for (int t = 0; t < layout.tensors(); ++t) {
    const UpdateTensor& tensor = update.tensors[t];
    for (size_t i = 0; i < tensor.sums.size(); ++i) {
      const int64_t at = tensor.form == TensorForm::kDense ? static_cast<int64_t>(i) : tensor.positions[i];
      const double weight = update.averaging == Averaging::kPeers ? static_cast<double>(update.total_weight)
                                                                  : tensor.weights[i];
      means[layout.offset(t) + at] =
          static_cast<float>(static_cast<double>(tensor.sums[i]) * std::ldexp(1.0, tensor.exponent) / weight);
    }
  }
  return means;
}

// A round's exact update of four sites of equal weight; its means are small integers over 64, so that sums
// over many rounds are exact in fp32.
Update RoundUpdate(TestRandom* random, Averaging averaging) {
  const Layout& layout = TestLayout();
  std::vector<DecodedFrame> decoded(4);
  for (DecodedFrame& frame : decoded) {
    frame.tensors.resize(layout.tensors());
    for (int t = 0; t < layout.tensors(); ++t) {
      DecodedTensor& tensor = frame.tensors[t];
      tensor.form = TensorForm::kSparse;
      tensor.exponent = -4;
      tensor.mantissa_bits = 20;
      for (int64_t i = 0; i < layout.size(t); ++i) {
        if (random->Below(8) != 0) continue;
        tensor.positions.push_back(static_cast<uint32_t>(i));
        // Multiples of 12: whole thirds and halves for CONTRIBUTORS.
        tensor.mantissas.push_back(12 * (static_cast<int32_t>(random->Below(64)) + 1) *
                                   (random->Below(2) == 0 ? 1 : -1));
      }
    }
  }
  std::vector<WeightedFrame> frames;
  for (const DecodedFrame& frame : decoded) frames.push_back({&frame, 64});
  frames[2].refused = {3};
  return *SumFrames(layout, frames, averaging);
}

class RecompressTest : public ::testing::TestWithParam<const char*> {};

TEST_P(RecompressTest, WhatWasAppliedAndWhatIsLeftAreTheExactSumOfTheRounds) {
  const Layout& layout = TestLayout();
  const auto codec = std::move(ParseCodecSpec(GetParam())).value();
  for (const Averaging averaging : {Averaging::kPeers, Averaging::kContributors}) {
    TestRandom random(3);
    std::vector<double> wanted(layout.total()), applied(layout.total());
    std::vector<float> residual(layout.total());
    double left = 0;
    for (int round = 0; round < 12; ++round) {
      const Update exact = RoundUpdate(&random, averaging);
      const auto sent = Recompress(layout, *codec, exact, absl::MakeSpan(residual));
      ASSERT_TRUE(sent.ok()) << sent.status();
      const std::vector<float> means = Means(layout, exact), moved = Means(layout, *sent);
      for (int64_t i = 0; i < layout.total(); ++i) {
        wanted[i] += means[i];
        applied[i] += moved[i];
        ASSERT_EQ(applied[i] + residual[i], wanted[i]) << "round " << round << ", value " << i;
      }
      left = SquareSum(residual);
    }
    EXPECT_GT(left, 0);
    const Update last = RoundUpdate(&random, averaging);
    const auto flushed = FlushResidual(layout, last, absl::MakeSpan(residual));
    ASSERT_TRUE(flushed.ok()) << flushed.status();
    EXPECT_EQ(SquareSum(residual), 0);
    const std::vector<float> means = Means(layout, last), moved = Means(layout, *flushed);
    for (int64_t i = 0; i < layout.total(); ++i) ASSERT_EQ(applied[i] + moved[i], wanted[i] + means[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Sparse, RecompressTest,
                         ::testing::Values("topk(k=64)", "topk(k=512)|levels(bits=2)",
                                           "topk(k=4096)|levels(bits=3)"));

TEST(RecompressUpdateTest, TheUpdateGoesThroughTheFormatUnchangedAndNamesTheSitesLeftOut) {
  const Layout& layout = TestLayout();
  TestRandom random(4);
  const auto codec = std::move(ParseCodecSpec("topk(k=64)")).value();
  std::vector<float> residual(layout.total());
  const Update exact = RoundUpdate(&random, Averaging::kContributors);
  const auto sent = Recompress(layout, *codec, exact, absl::MakeSpan(residual));
  ASSERT_TRUE(sent.ok()) << sent.status();
  EXPECT_EQ(sent->averaging, Averaging::kPeers);
  EXPECT_EQ(sent->total_weight, 1);
  EXPECT_EQ(sent->tensors[3].left_out, std::vector<uint16_t>({2}));
  const auto decoded = DecodeUpdate(layout, EncodeUpdate(layout, *sent));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_TRUE(SameUpdate(*decoded, *sent));
  EXPECT_LT(EncodeUpdate(layout, *sent).size(), EncodeUpdate(layout, exact).size() / 8);
}

TEST(RecompressUpdateTest, ALosslessCodecGivesTheExactUpdateAndLeavesNothing) {
  const Layout& layout = TestLayout();
  TestRandom random(5);
  const auto codec = MakeIdentityCodec();
  std::vector<float> residual(layout.total());
  for (int round = 0; round < 3; ++round) {
    const Update exact = RoundUpdate(&random, Averaging::kPeers);
    const auto sent = Recompress(layout, *codec, exact, absl::MakeSpan(residual));
    ASSERT_TRUE(sent.ok()) << sent.status();
    EXPECT_EQ(Means(layout, *sent), Means(layout, exact));
    EXPECT_EQ(residual, std::vector<float>(layout.total()));
  }
}

TEST(RecompressUpdateTest, TheSameInputGivesTheSameBytesAndTheSameResidual) {
  const Layout& layout = TestLayout();
  const auto run = [&](int threads) {
    TestRandom random(6);
    CodecOptions options;
    options.threads = threads;
    const auto codec = std::move(ParseCodecSpec("topk(k=64)|levels(bits=2)", options)).value();
    std::vector<float> residual(layout.total());
    std::string bytes;
    for (int round = 0; round < 4; ++round) {
      const Update exact = RoundUpdate(&random, Averaging::kPeers);
      bytes += EncodeUpdate(layout, *Recompress(layout, *codec, exact, absl::MakeSpan(residual)));
    }
    return std::make_pair(bytes, residual);
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_EQ(run(1), run(3));
}

TEST(RecompressUpdateTest, WhatIsNotFiniteIsRefusedAndTheResidualUntouched) {
  const Layout& layout = TestLayout();
  TestRandom random(7);
  const auto codec = std::move(ParseCodecSpec("topk(k=64)")).value();
  const Update exact = RoundUpdate(&random, Averaging::kPeers);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> residual(layout.total(), 0.5f);
    residual[5001] = bad;
    const auto sent = Recompress(layout, *codec, exact, absl::MakeSpan(residual));
    EXPECT_EQ(sent.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(sent.status().message()), HasSubstr("tensor 2 at position 0"));
    const auto flushed = FlushResidual(layout, exact, absl::MakeSpan(residual));
    EXPECT_EQ(flushed.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(flushed.status().message()), HasSubstr("value 5001"));
    EXPECT_EQ(residual[0], 0.5f);
    EXPECT_EQ(residual[9000], 0.5f);
  }
}

TEST(RecompressUpdateTest, AnUpdateOrResidualOfAnotherLayoutIsRefused) {
  TestRandom random(8);
  const auto codec = std::move(ParseCodecSpec("topk(k=64)")).value();
  const Update exact = RoundUpdate(&random, Averaging::kPeers);
  std::vector<float> residual(TestLayout().total() - 1);
  EXPECT_EQ(Recompress(TestLayout(), *codec, exact, absl::MakeSpan(residual)).status().code(),
            absl::StatusCode::kInvalidArgument);
  const Layout other({4096, 1, 5000, 77}, 9);
  residual.resize(other.total());
  EXPECT_EQ(FlushResidual(other, exact, absl::MakeSpan(residual)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(RecompressUpdateTest, AFlushKeepsFiftyTwoBitsBelowATensorsLargestValue) {
  const Layout layout({3, 2}, 1);
  Update nothing;
  nothing.total_weight = 64;
  nothing.tensors.resize(2);
  const float subnormal = std::numeric_limits<float>::denorm_min();
  std::vector<float> residual = {1.5f, -0x1p-51f, 0x1.8p-53f, subnormal, -3 * subnormal};
  const auto sent = FlushResidual(layout, nothing, absl::MakeSpan(residual));
  ASSERT_TRUE(sent.ok()) << sent.status();
  EXPECT_EQ(sent->tensors[0].exponent, -51);
  EXPECT_EQ(sent->tensors[0].sums, std::vector<int64_t>({int64_t{3} << 50, -1, 0}));
  EXPECT_EQ(sent->tensors[1].exponent, -149);
  EXPECT_EQ(sent->tensors[1].sums, std::vector<int64_t>({1, -3}));
  EXPECT_EQ(residual, std::vector<float>({0, 0, 0x1.8p-53f, 0, 0}));
}

TEST(RecompressUpdateTest, AFlushOfRoundHugeValuesGoesThroughTheFormat) {
  const Layout layout({2}, 1);
  Update nothing;
  nothing.total_weight = 64;
  nothing.tensors.resize(1);
  for (const float huge : {0x1p109f, 0x1p127f}) {
    std::vector<float> residual = {huge, -1.5f * huge};
    const auto sent = FlushResidual(layout, nothing, absl::MakeSpan(residual));
    ASSERT_TRUE(sent.ok()) << sent.status();
    const auto decoded = DecodeUpdate(layout, EncodeUpdate(layout, *sent));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(Means(layout, *decoded), std::vector<float>({huge, -1.5f * huge}));
    EXPECT_EQ(residual, std::vector<float>({0, 0}));
  }
}

TEST(RecompressUpdateTest, AFlushOfTheLargestValuesThereAreGoesThroughTheFormat) {
  const Layout layout({2}, 1);
  Update nothing;
  nothing.total_weight = 64;
  nothing.tensors.resize(1);
  const float most = std::numeric_limits<float>::max();
  std::vector<float> residual = {most, -most};
  const auto sent = FlushResidual(layout, nothing, absl::MakeSpan(residual));
  ASSERT_TRUE(sent.ok()) << sent.status();
  const auto decoded = DecodeUpdate(layout, EncodeUpdate(layout, *sent));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(Means(layout, *decoded), std::vector<float>({most, -most}));
  EXPECT_EQ(residual, std::vector<float>({0, 0}));
}

}  // namespace
}  // namespace isthmus
