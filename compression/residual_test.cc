// The separate residual, on every codec: the frame is that of the sum, the residual what the frame leaves.
#include "compression/residual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "compression/fake_codecs.h"
#include "compression/float_mode.h"
#include "compression/test_random.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace isthmus {
namespace {

using ::testing::HasSubstr;

struct Case {
  const char* name;
  std::unique_ptr<Codec> (*make)();
  bool takes_any = true;  // values of whatever scale; the fakes do not
};

template <const char* const& Spec>
std::unique_ptr<Codec> Parsed() {
  return std::move(ParseCodecSpec(Spec)).value();
}
constexpr const char* kOneBit = "topk(k=64)";
constexpr const char* kTwoBits = "topk(k=512)|levels(bits=2)";
constexpr const char* kThreeBits = "topk(k=4096)|levels(bits=3)|zstd(3)";
constexpr const char* kDense = "dense";

std::vector<uint32_t> Bits(absl::Span<const float> values) {
  std::vector<uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  return bits;
}

class ResidualTest : public ::testing::TestWithParam<Case> {
 protected:
  ResidualTest() : codec_(GetParam().make()), layout_({1, 4095, 4096, 4097, 77, 12289}, 0x77), random_(11) {
    for (std::vector<float>* values : {&anchor_, &parameters_, &residual_}) values->resize(layout_.total());
    for (int64_t i = 0; i < layout_.total(); ++i) {
      anchor_[i] = Small(1 << 9);
      parameters_[i] = anchor_[i] + Small(1 << 5);
      residual_[i] = Small(1 << 5);
    }
  }

  // Small integers over a power of two: every codec, the identity too, can take them.
  float Small(int most) {
    return (static_cast<float>(random_.Below(2 * most + 1)) - static_cast<float>(most)) / 64;
  }

  // The definition, value by value. Leaves the residual in *left.
  std::string Reference(float beta, std::vector<float>* left) {
    const PlainFloatScope plain;
    std::vector<float> sums(residual_.size());
    for (size_t i = 0; i < sums.size(); ++i) {
      const float kept = beta * residual_[i];
      const float difference = anchor_[i] - parameters_[i];
      sums[i] = kept + difference;
    }
    const auto frame = codec_->Encode(layout_, sums, std::vector<float>(sums.size(), 0.0f));
    EXPECT_TRUE(frame.ok()) << frame.status();
    const auto decoded = codec_->Decode(layout_, *frame);
    EXPECT_TRUE(decoded.ok()) << decoded.status();
    for (int t = 0; t < layout_.tensors(); ++t) {
      const DecodedTensor& tensor = decoded->tensors[t];
      for (size_t i = 0; i < tensor.mantissas.size(); ++i) {
        float& sum = sums[layout_.offset(t) + (tensor.positions.empty() ? i : tensor.positions[i])];
        sum = sum - DecodedValue(tensor.mantissas[i], tensor.exponent);
      }
    }
    *left = std::move(sums);
    return *frame;
  }

  void ExpectAsDefined(float beta, const std::string& what) {
    std::vector<float> left;
    const std::string expected = Reference(beta, &left);
    const auto frame = codec_->EncodeResidual(layout_, anchor_, parameters_, beta, absl::MakeSpan(residual_));
    ASSERT_TRUE(frame.ok()) << what << ": " << frame.status();
    EXPECT_TRUE(*frame == expected) << what;
    EXPECT_TRUE(Bits(residual_) == Bits(left)) << what;
  }

  const std::unique_ptr<Codec> codec_;
  Layout layout_;
  TestRandom random_;
  std::vector<float> anchor_, parameters_, residual_;
};

TEST_P(ResidualTest, TheResidualAfterIsTheSumLessTheDecodedFrame) {
  for (float beta : {1.0f, 0.5f, 0.0f}) {
    ExpectAsDefined(beta, "β " + std::to_string(beta));
    for (float& p : parameters_) p += Small(1 << 5);
  }
}

TEST_P(ResidualTest, EveryScaleIsSubtractedAsTheDecoderReadsIt) {
  if (!GetParam().takes_any) GTEST_SKIP() << "this codec does not take every scale";
  for (int exponent : {0, -20, -100, -126, -135, -145, 100, 120}) {
    for (int64_t i = 0; i < layout_.total(); ++i) {
      anchor_[i] = 0;
      parameters_[i] = static_cast<float>(std::ldexp(random_.Normal(), exponent));
      residual_[i] = static_cast<float>(std::ldexp(random_.Normal(), exponent));
      // Blocks of one tensor 2^20 apart.
      if (i / 4096 % 2 == 1) parameters_[i] = std::ldexp(parameters_[i], -20);
    }
    ExpectAsDefined(0.95f, "2^" + std::to_string(exponent));
    ExpectAsDefined(0.95f, "again at 2^" + std::to_string(exponent));
  }
}

TEST_P(ResidualTest, ZerosHugeValuesAndSubnormalsHoldTheRuleToo) {
  if (!GetParam().takes_any) GTEST_SKIP() << "this codec does not take every scale";
  std::fill(residual_.begin(), residual_.end(), 0.0f);
  ExpectAsDefined(0.95f, "an empty residual");
  parameters_ = anchor_;
  std::fill(residual_.begin(), residual_.end(), -0.0f);
  ExpectAsDefined(1.0f, "negative zeros");
  residual_[4500] = std::numeric_limits<float>::max();
  ExpectAsDefined(1.0f, "one huge value");
  for (int i = 0; i < 300; ++i) residual_[8300 + i] = std::numeric_limits<float>::denorm_min() * (i - 150);
  ExpectAsDefined(1.0f, "subnormal values");
}

TEST_P(ResidualTest, FlushToZeroOfTheCallersThreadChangesNothing) {
#if defined(__SSE2__)
  if (!GetParam().takes_any) GTEST_SKIP() << "this codec does not take every scale";
  for (int64_t i = 0; i < layout_.total(); ++i) {
    anchor_[i] = 0;
    parameters_[i] = static_cast<float>(std::ldexp(random_.Normal(), -130));
    residual_[i] = static_cast<float>(std::ldexp(random_.Normal(), -130));
  }
  std::vector<float> left;
  const std::string expected = Reference(0.95f, &left);
  const unsigned int saved = _mm_getcsr();
  _mm_setcsr(saved | 0x8040u);
  const auto frame = codec_->EncodeResidual(layout_, anchor_, parameters_, 0.95f, absl::MakeSpan(residual_));
  _mm_setcsr(saved);
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_TRUE(*frame == expected);
  EXPECT_TRUE(Bits(residual_) == Bits(left));
#else
  GTEST_SKIP() << "no way to switch it on here";
#endif
}

TEST_P(ResidualTest, ANonFiniteSumIsRefusedByNameAndTheResidualUntouched) {
  const std::vector<float> before = residual_;
  parameters_[1 + 4095 + 4096 + 4097 + 42] = std::numeric_limits<float>::quiet_NaN();
  auto frame = codec_->EncodeResidual(layout_, anchor_, parameters_, 0.5f, absl::MakeSpan(residual_));
  EXPECT_EQ(frame.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(frame.status().message()),
              HasSubstr("tensor 4 at position 42 would not be finite (anchor finite, parameter NaN"));
  EXPECT_TRUE(Bits(residual_) == Bits(before));

  parameters_[1 + 4095 + 4096 + 4097 + 42] = 0;
  parameters_[layout_.total() - 1] = std::numeric_limits<float>::infinity();
  frame = codec_->EncodeResidual(layout_, anchor_, parameters_, 0.5f, absl::MakeSpan(residual_));
  EXPECT_THAT(std::string(frame.status().message()), HasSubstr("tensor 5 at position 12288"));
  EXPECT_TRUE(Bits(residual_) == Bits(before));

  parameters_[layout_.total() - 1] = 0;
  residual_[0] = std::numeric_limits<float>::infinity();
  frame = codec_->EncodeResidual(layout_, anchor_, parameters_, 1, absl::MakeSpan(residual_));
  EXPECT_THAT(std::string(frame.status().message()), HasSubstr("residual Inf"));
}

TEST_P(ResidualTest, WrongSizesAndDecaysAreRefused) {
  const auto code = [&](float beta, size_t values) {
    return codec_
        ->EncodeResidual(layout_, anchor_, parameters_, beta, absl::MakeSpan(residual_).first(values))
        .status()
        .code();
  };
  EXPECT_EQ(code(1, residual_.size() - 1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(1.5f, residual_.size()), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(-0.5f, residual_.size()), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(std::numeric_limits<float>::quiet_NaN(), residual_.size()),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(ResidualTest, AFrameThatWasNotCommittedIsAddedBackInTheTensorsNamed) {
  for (float& r : residual_) r = 0;
  std::vector<float> sums(residual_.size());
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = anchor_[i] - parameters_[i];
  const auto frame = codec_->EncodeResidual(layout_, anchor_, parameters_, 1, absl::MakeSpan(residual_));
  ASSERT_TRUE(frame.ok()) << frame.status();
  const DecodedFrame decoded = *codec_->Decode(layout_, *frame);
  const std::vector<float> left = residual_;
  AddDecoded(layout_, decoded, {true, false, true, false, true, true}, absl::MakeSpan(residual_));
  for (int t = 0; t < layout_.tensors(); ++t) {
    // Multiples of a power of two, few bits: taking away and adding back is exact.
    const std::vector<float>& expected = t == 1 || t == 3 ? left : sums;
    for (int64_t i = layout_.offset(t); i < layout_.offset(t) + layout_.size(t); ++i)
      ASSERT_EQ(residual_[i], expected[i]) << t << " " << i;
  }
}

TEST_P(ResidualTest, AMatrixOfWhichFewRowsWereTouchedLeavesWhatItsFrameDoesNotTake) {
  if (!GetParam().takes_any) GTEST_SKIP() << "this codec does not take every scale";
  layout_ = Layout({1000 * 64, 4096}, 5, {64, 0});
  anchor_ = parameters_ = residual_ = std::vector<float>(layout_.total(), 0.0f);
  for (int round = 0; round < 2; ++round) {
    for (int row = round; row < 1000; row += 50) {
      for (int i = 0; i < 64; ++i) parameters_[64 * row + i] += static_cast<float>(random_.Normal());
    }
    ExpectAsDefined(0.95f, "some rows");
  }
  for (float& p : parameters_) p += static_cast<float>(random_.Normal());
  ExpectAsDefined(0.95f, "all rows");
}

// The slow way, which every codec inherits, is the oracle.
TEST_P(ResidualTest, EveryPathAndThreadCountGivesTheFrameAndTheResidualOfTheSlowWay) {
  if (!GetParam().takes_any) GTEST_SKIP() << "this codec does not take every scale";
  const std::vector<float> anchor = random_.Normals(layout_.total(), 1);
  for (int kind = 0; kind < 4; ++kind) {
    std::vector<float> before = random_.Normals(layout_.total(), 0.01), p = anchor;
    for (int64_t i = 0; i < layout_.total(); ++i) {
      p[i] += static_cast<float>(random_.Normal() * 0.01);
      const int64_t block = i / kBlockValues;
      if (kind == 1 && block % 2 == 1) p[i] = anchor[i], before[i] = std::ldexp(before[i], -20);
      if (kind == 2 && i % 97 != 0) p[i] = anchor[i], before[i] = 0;
      if (kind == 3) p[i] = anchor[i], before[i] = std::ldexp(before[i], i % 2 == 0 ? -139 : 123);
    }
    std::vector<float> expected_left(before.size()), left(before.size());
    const auto expected =
        codec_->Codec::EncodeResidualTo(layout_, anchor, p, 0.95f, before, absl::MakeSpan(expected_left));
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (SimdPath path : kAllSimdPaths) {
      if (!HasSimdPath(path)) continue;
      for (int threads : {1, 3}) {
        const auto codec = std::move(ParseCodecSpec(codec_->spec(), {threads, path})).value();
        std::fill(left.begin(), left.end(), 7.0f);
        const auto frame = codec->EncodeResidualTo(layout_, anchor, p, 0.95f, before, absl::MakeSpan(left));
        ASSERT_TRUE(frame.ok()) << frame.status();
        EXPECT_TRUE(*frame == *expected) << kind << " " << SimdPathName(path) << " " << threads;
        EXPECT_TRUE(Bits(left) == Bits(expected_left)) << kind << " " << SimdPathName(path) << " " << threads;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, ResidualTest,
                         ::testing::Values(Case{"OneBit", Parsed<kOneBit>}, Case{"TwoBits", Parsed<kTwoBits>},
                                           Case{"ThreeBits", Parsed<kThreeBits>},
                                           Case{"Dense", Parsed<kDense>},
                                           Case{"Identity", MakeIdentityCodec, false},
                                           Case{"Lossy", MakeLossyCodec, false}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace isthmus
