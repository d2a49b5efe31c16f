#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "compression/codec.h"
#include "compression/test_random.h"

namespace isthmus {
namespace {

DecodedTensor RoundTrip(const std::vector<float>& d) {
  const auto codec = std::move(ParseCodecSpec("dense")).value();
  const Layout layout({static_cast<int64_t>(d.size())}, 1);
  std::vector<float> parameters(d.size());
  for (size_t i = 0; i < d.size(); ++i) parameters[i] = 0 - d[i];
  const auto frame = codec->Encode(layout, std::vector<float>(d.size()), parameters);
  EXPECT_TRUE(frame.ok()) << frame.status();
  const auto decoded = codec->Decode(layout, *frame);
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return decoded->tensors[0];
}

TEST(DenseCodecTest, LargestMantissaHas23Bits) {
  const DecodedTensor t = RoundTrip({1.0f, -0.5f, 0x1p-22f});
  EXPECT_EQ(t.form, TensorForm::kDense);
  EXPECT_EQ(t.mantissa_bits, 24);
  EXPECT_EQ(t.exponent, -22);
  EXPECT_EQ(t.mantissas, (std::vector<int32_t>{1 << 22, -(1 << 21), 1}));
}

TEST(DenseCodecTest, HalvesRoundToEven) {
  const float step = 0x1p-22f;
  EXPECT_EQ(RoundTrip({1.0f, 0.5f * step, 1.5f * step, -2.5f * step}).mantissas,
            (std::vector<int32_t>{1 << 22, 0, 2, -2}));
}

TEST(DenseCodecTest, ALargestValueThatRoundsUpTakesTheNextExponent) {
  const DecodedTensor t = RoundTrip({std::nextafter(1.0f, 0.0f)});  // 2^24 − 1 over 2^24
  EXPECT_EQ(t.exponent, -22);
  EXPECT_EQ(t.mantissas, (std::vector<int32_t>{1 << 22}));
}

TEST(DenseCodecTest, EveryValueIsWithinHalfAStepAndSubnormalsAreExact) {
  TestRandom random(5);
  std::vector<float> d(10000);
  for (float& v : d) v = static_cast<float>(random.Uniform() - 0.5) * 0.01f;
  const DecodedTensor t = RoundTrip(d);
  for (size_t i = 0; i < d.size(); ++i) {
    ASSERT_LE(std::fabs(DecodedValue(t.mantissas[i], t.exponent) - d[i]), std::ldexp(0.5, t.exponent));
  }
  const DecodedTensor tiny = RoundTrip({0x1p-149f, -0x1p-140f});
  EXPECT_EQ(tiny.exponent, -149);
  EXPECT_EQ(tiny.mantissas, (std::vector<int32_t>{1, -512}));
}

TEST(DenseCodecTest, TheLargestFloatsStayFinite) {
  const DecodedTensor t = RoundTrip({3.4028234e38f, -3.4028234e38f, 0});
  EXPECT_EQ(t.exponent, 105);
  EXPECT_EQ(t.mantissas, (std::vector<int32_t>{(1 << 23) - 1, -((1 << 23) - 1), 0}));
}

}  // namespace
}  // namespace isthmus
