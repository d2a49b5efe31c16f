#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "compression/codec.h"
#include "compression/level_table.h"
#include "compression/test_random.h"

namespace isthmus {
namespace {

DecodedFrame RoundTrip(absl::string_view spec, const Layout& layout, const std::vector<float>& differences) {
  const auto codec = std::move(ParseCodecSpec(spec)).value();
  std::vector<float> parameters(differences.size());
  for (size_t i = 0; i < differences.size(); ++i) parameters[i] = 0 - differences[i];
  const auto frame = codec->Encode(layout, std::vector<float>(differences.size()), parameters);
  EXPECT_TRUE(frame.ok()) << frame.status();
  const auto decoded = codec->Decode(layout, *frame);
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return *decoded;
}

TEST(SparseCodecTest, OneBitSendsTheMeanOfTheLargestWithTheirSigns) {
  std::vector<float> d(100, 0.0f);
  d[3] = 3;
  d[50] = -5;
  d[99] = 1;                                                                // not among the two largest
  const DecodedFrame frame = RoundTrip("topk(k=82)", Layout({100}, 1), d);  // round(82·100/4096) = 2
  const DecodedTensor& t = frame.tensors[0];
  EXPECT_EQ(t.form, TensorForm::kSparse);
  EXPECT_EQ(t.positions, (std::vector<uint32_t>{3, 50}));
  EXPECT_EQ(t.exponent, -17);  // 4 = 16·2^15·2^−17
  EXPECT_EQ(t.mantissas, (std::vector<int32_t>{16 << 15, -(16 << 15)}));
  EXPECT_EQ(t.mantissa_bits, 20);
}

TEST(SparseCodecTest, TwoBitsSendTwoLevels) {
  std::vector<float> d(4096, 0.0f);
  d[0] = 1;
  d[1] = -1;
  d[4000] = 1;
  d[4095] = -17;
  const DecodedFrame frame = RoundTrip("topk(k=4)|levels(bits=2)", Layout({4096}, 1), d);
  const DecodedTensor& t = frame.tensors[0];
  EXPECT_EQ(t.positions, (std::vector<uint32_t>{0, 1, 4000, 4095}));
  std::vector<float> values;
  for (int32_t m : t.mantissas) values.push_back(DecodedValue(m, t.exponent));
  EXPECT_EQ(values, (std::vector<float>{1, -1, 1, -17}));
}

TEST(SparseCodecTest, ZerosAreNotKeptAndDoNotLowerTheMean) {
  std::vector<float> d(3 * 4096, 0.0f);
  d[0] = d[254] = d[4095] = -2;
  d[4096 + 7] = 2;
  d[4096 + 8] = -0.0f;
  const DecodedFrame frame = RoundTrip("topk(k=64)", Layout({3 * 4096}, 1), d);
  const DecodedTensor& t = frame.tensors[0];
  EXPECT_EQ(t.positions, (std::vector<uint32_t>{0, 254, 4095, 4096 + 7}));
  std::vector<float> values;
  for (int32_t m : t.mantissas) values.push_back(DecodedValue(m, t.exponent));
  EXPECT_EQ(values, (std::vector<float>{-2, -2, -2, 2}));
}

TEST(SparseCodecTest, BlocksFarBelowTheLargestOneSendNothing) {
  std::vector<float> d(3 * 4096, 0.0f);
  std::fill(d.begin(), d.begin() + 4096, 1.0f);
  std::fill(d.begin() + 4096, d.begin() + 2 * 4096, 0x1p-17f);  // level 4 of E = −19: nearer to zero
  std::fill(d.begin() + 2 * 4096, d.end(), 0x1p-15f);           // 16, nearest is 17
  const DecodedFrame frame = RoundTrip("topk(k=2)", Layout({3 * 4096}, 1), d);
  const DecodedTensor& t = frame.tensors[0];
  EXPECT_EQ(t.exponent, -19);
  EXPECT_EQ(t.positions, (std::vector<uint32_t>{0, 1, 8192, 8193}));
  EXPECT_EQ(t.mantissas, (std::vector<int32_t>{1 << 19, 1 << 19, 17, 17}));
}

TEST(SparseCodecTest, SubnormalAndHugeDifferencesDecodeFinite) {
  std::vector<float> d(2 * 4096, 0.0f);
  std::fill(d.begin(), d.begin() + 4096, 0x1p-149f * 20);
  std::fill(d.begin() + 4096, d.end(), 3.4e38f);
  const DecodedFrame frame = RoundTrip("topk(k=1)", Layout({4096, 4096}, 1), d);
  EXPECT_EQ(frame.tensors[0].exponent, -149);
  EXPECT_EQ(frame.tensors[0].mantissas, (std::vector<int32_t>{20}));
  EXPECT_EQ(frame.tensors[1].exponent, 108);
  EXPECT_EQ(frame.tensors[1].mantissas, (std::vector<int32_t>{kLargestLevel}));
}

TEST(SparseCodecTest, DifferencesTooSmallForAnyLevelMakeTheTensorAbsent) {
  const DecodedFrame frame =
      RoundTrip("topk(k=8)", Layout({4096}, 1), std::vector<float>(4096, 0x1p-149f * 8));
  EXPECT_EQ(frame.tensors[0].form, TensorForm::kAbsent);
}

// The codec's meaning, straight from the rules, with none of its code: position → value.
std::map<int64_t, double> SlowCodec(const std::vector<float>& d, int k) {
  std::map<int64_t, double> fitted;
  double largest = 0;
  for (size_t from = 0; from < d.size(); from += 4096) {
    const size_t n = std::min<size_t>(4096, d.size() - from);
    const size_t kept = std::max<size_t>(1, static_cast<size_t>(std::floor(k * double(n) / 4096 + 0.5)));
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), from);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return std::fabs(d[a]) > std::fabs(d[b]); });
    order.resize(kept);
    while (!order.empty() && d[order.back()] == 0) order.pop_back();
    if (order.empty()) continue;
    double sum = 0;  // exact: the test's values are multiples of 2^−10 below 2^10
    for (size_t i : order) sum += std::fabs(d[i]);
    for (size_t i : order) fitted[i] = sum / order.size();
    largest = std::max(largest, sum / order.size());
  }
  int exponent = -149;
  while (std::ldexp(31 << 15, exponent) < largest) ++exponent;
  std::map<int64_t, double> values;
  for (const auto& [position, mean] : fitted) {
    double best = 0;
    for (int c = 1; c < 256; ++c) {
      const double level = std::ldexp((16 + c % 16) << (c / 16), exponent);
      if (std::fabs(level - mean) < std::fabs(best - mean)) best = level;
    }
    if (best > 0) values[position] = d[position] < 0 ? -best : best;
  }
  return values;
}

TEST(SparseCodecTest, AgreesWithASlowReadingOfTheRules) {
  TestRandom random(3);
  for (int k : {1, 64, 512, 4096}) {
    std::vector<float> d(4096 * 4 + 1000);
    for (size_t i = 0; i < d.size(); ++i) {
      if (i / 4096 == 2 && random.Chance(0.99)) continue;  // a block with fewer than most k
      d[i] = (static_cast<float>(random.Below(1 << 20)) - 0x1p19f) * 0x1p-10f / (i < 4096 ? 64 : 1);
    }
    const DecodedFrame frame =
        RoundTrip("topk(k=" + std::to_string(k) + ")", Layout({int64_t(d.size())}, 1), d);
    std::map<int64_t, double> got;
    const DecodedTensor& t = frame.tensors[0];
    for (size_t i = 0; i < t.positions.size(); ++i)
      got[t.positions[i]] = DecodedValue(t.mantissas[i], t.exponent);
    EXPECT_EQ(got, SlowCodec(d, k)) << k;
  }
}

}  // namespace
}  // namespace isthmus
