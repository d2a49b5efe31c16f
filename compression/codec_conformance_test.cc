// What every codec must do, run on the real ones and on the fakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "compression/codec.h"
#include "compression/fake_codecs.h"
#include "compression/test_random.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

struct Case {
  const char* name;
  std::unique_ptr<Codec> (*make)();
};

template <const char* const& Spec>
std::unique_ptr<Codec> Parsed() {
  return std::move(ParseCodecSpec(Spec)).value();
}
constexpr const char* kOneBit = "topk(k=64)";
constexpr const char* kTwoBits = "topk(k=512)|levels(bits=2)";
constexpr const char* kThreeBits = "topk(k=4096)|levels(bits=3)|zstd(3)";
constexpr const char* kAuto = "topk(k=64,share=energy)|levels(bits=auto)";
constexpr const char* kDense = "dense";
constexpr const char* kMask = "mask(k=64,seed=3)";
constexpr const char* kMaskThreeBits = "mask(k=1024)|levels(bits=3)";
constexpr const char* kInt8 = "dense(bits=8)";
constexpr const char* kInt8Stored = "dense(bits=8,group=16)|zstd(0)";
constexpr const char* kInt4 = "dense(bits=4)";
constexpr const char* kInt4Hadamard = "dense(bits=4,group=128,hadamard=7)";

class CodecConformanceTest : public ::testing::TestWithParam<Case> {
 protected:
  CodecConformanceTest() : codec_(GetParam().make()), layout_({5000, 1, 4096, 77, 12288}, 0x1234) {
    TestRandom random(7);
    anchor_.resize(layout_.total());
    parameters_.resize(layout_.total());
    for (int64_t i = 0; i < layout_.total(); ++i) {
      anchor_[i] = static_cast<float>(random.Below(1 << 12));
      // Small integers over a power of two: every codec, the identity too, can take them.
      parameters_[i] = anchor_[i] - (static_cast<float>(random.Below(1 << 11)) - 1024) / 64;
    }
  }

  std::string Encoded() {
    auto frame = codec_->Encode(layout_, anchor_, parameters_);
    EXPECT_TRUE(frame.ok()) << frame.status();
    return *frame;
  }

  const std::unique_ptr<Codec> codec_;
  Layout layout_;
  std::vector<float> anchor_, parameters_;
};

TEST_P(CodecConformanceTest, DecodedFrameFitsTheLayoutAndItsOwnBounds) {
  const auto decoded = codec_->Decode(layout_, Encoded());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  ASSERT_EQ(decoded->tensors.size(), 5u);
  for (int t = 0; t < 5; ++t) {
    const DecodedTensor& tensor = decoded->tensors[t];
    ASSERT_NE(tensor.form, TensorForm::kAbsent) << t;
    if (tensor.form == TensorForm::kDense) {
      EXPECT_EQ(tensor.mantissas.size(), layout_.size(t));
    } else {
      EXPECT_EQ(tensor.mantissas.size(), tensor.positions.size());
      for (size_t i = 0; i < tensor.positions.size(); ++i) {
        ASSERT_LT(tensor.positions[i], layout_.size(t));
        ASSERT_TRUE(i == 0 || tensor.positions[i - 1] < tensor.positions[i]);
      }
    }
    EXPECT_GE(tensor.exponent, -149);
    for (int32_t m : tensor.mantissas) {
      ASSERT_LT(std::abs(int64_t{m}), int64_t{1} << tensor.mantissa_bits);
      ASSERT_TRUE(std::isfinite(DecodedValue(m, tensor.exponent)));
    }
  }
}

TEST_P(CodecConformanceTest, DecodedValuesPointTheWayOfTheDifference) {
  const auto decoded = codec_->Decode(layout_, Encoded());
  ASSERT_TRUE(decoded.ok());
  double dot = 0;
  for (int t = 0; t < layout_.tensors(); ++t) {
    const DecodedTensor& tensor = decoded->tensors[t];
    for (size_t i = 0; i < tensor.mantissas.size(); ++i) {
      const int64_t at = layout_.offset(t) + (tensor.positions.empty() ? i : tensor.positions[i]);
      dot += static_cast<double>(anchor_[at] - parameters_[at]) *
             DecodedValue(tensor.mantissas[i], tensor.exponent);
    }
  }
  EXPECT_GT(dot, 0);
}

TEST_P(CodecConformanceTest, SameInputGivesSameBytesWithinTheBound) {
  const std::string frame = Encoded();
  EXPECT_EQ(frame, Encoded());
  EXPECT_LE(static_cast<int64_t>(frame.size()), codec_->BoundBytes(layout_));
}

TEST_P(CodecConformanceTest, NoDifferenceGivesAbsentTensors) {
  const auto frame = codec_->Encode(layout_, anchor_, anchor_);
  ASSERT_TRUE(frame.ok());
  EXPECT_LT(frame->size(), 150u);
  const auto decoded = codec_->Decode(layout_, *frame);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  for (const DecodedTensor& tensor : decoded->tensors) EXPECT_EQ(tensor.form, TensorForm::kAbsent);
}

TEST_P(CodecConformanceTest, NonFiniteDifferencesAreRefusedByTensorAndPosition) {
  parameters_[5000 + 1 + 4096 + 42] = std::numeric_limits<float>::quiet_NaN();
  auto frame = codec_->Encode(layout_, anchor_, parameters_);
  EXPECT_EQ(frame.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(frame.status().message()), HasSubstr("tensor 3 at position 42 is not finite"));
  EXPECT_THAT(std::string(frame.status().message()), HasSubstr("parameter NaN"));
  parameters_[4999] = std::numeric_limits<float>::infinity();
  frame = codec_->Encode(layout_, anchor_, parameters_);
  EXPECT_THAT(std::string(frame.status().message()), HasSubstr("tensor 0 at position 4999"));
  anchor_[7] = std::numeric_limits<float>::max();
  parameters_[7] = -anchor_[7];  // both finite, their difference is not
  frame = codec_->Encode(layout_, anchor_, parameters_);
  EXPECT_THAT(std::string(frame.status().message()), HasSubstr("tensor 0 at position 7"));
}

TEST_P(CodecConformanceTest, WrongSizesAreRefused) {
  anchor_.pop_back();
  EXPECT_EQ(codec_->Encode(layout_, anchor_, parameters_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(CodecConformanceTest, EveryCutAndEveryFlippedBitIsFound) {
  const Layout small({300}, 9);
  const auto frame = codec_->Encode(small, absl::MakeConstSpan(anchor_).first(300),
                                    absl::MakeConstSpan(parameters_).first(300));
  ASSERT_TRUE(frame.ok());
  for (size_t cut = 0; cut < frame->size(); ++cut) {
    ASSERT_EQ(codec_->Decode(small, frame->substr(0, cut)).status().code(), absl::StatusCode::kDataLoss)
        << cut;
  }
  for (size_t bit = 0; bit < 8 * frame->size(); ++bit) {
    std::string flipped = *frame;
    flipped[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    ASSERT_EQ(codec_->Decode(small, flipped).status().code(), absl::StatusCode::kDataLoss) << bit;
  }
}

TEST_P(CodecConformanceTest, OtherLayoutsAndSpecsAreRefused) {
  const std::string frame = Encoded();
  const Layout other({5000, 1, 4096, 77, 12288}, 0x1235);
  EXPECT_EQ(codec_->Decode(other, frame).status().code(), absl::StatusCode::kInvalidArgument);
  const auto stranger = std::move(ParseCodecSpec("topk(k=7)")).value();
  const auto strange = stranger->Encode(layout_, anchor_, parameters_);
  ASSERT_TRUE(strange.ok());
  const auto refused = codec_->Decode(layout_, *strange);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("another codec spec"));
}

TEST_P(CodecConformanceTest, OversizeInputIsRefusedUnread) {
  const std::string huge(codec_->BoundBytes(layout_) + 1, 'x');
  const auto decoded = codec_->Decode(layout_, huge);
  EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(decoded.status().message()), HasSubstr("at most"));
}

INSTANTIATE_TEST_SUITE_P(
    Codecs, CodecConformanceTest,
    ::testing::Values(Case{"OneBit", Parsed<kOneBit>}, Case{"TwoBits", Parsed<kTwoBits>},
                      Case{"ThreeBits", Parsed<kThreeBits>}, Case{"Auto", Parsed<kAuto>},
                      Case{"Dense", Parsed<kDense>}, Case{"Mask", Parsed<kMask>},
                      Case{"MaskThreeBits", Parsed<kMaskThreeBits>}, Case{"Int8", Parsed<kInt8>},
                      Case{"Int8Stored", Parsed<kInt8Stored>}, Case{"Int4", Parsed<kInt4>},
                      Case{"Int4Hadamard", Parsed<kInt4Hadamard>}, Case{"Identity", MakeIdentityCodec},
                      Case{"Lossy", MakeLossyCodec}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace isthmus
