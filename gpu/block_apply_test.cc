#include "gpu/block_apply.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "compression/float_mode.h"
#include "compression/test_random.h"

namespace isthmus {
namespace {

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

class BlockApplyTest : public ::testing::TestWithParam<SimdPath> {
 protected:
  void SetUp() override {
    if (!HasSimdPath(GetParam())) GTEST_SKIP() << "this processor lacks " << SimdPathName(GetParam());
  }
};

// Sums of all sizes, among them quotients as near to the middle of two floats as they come.
std::vector<int32_t> Sums(int count, int64_t weight, TestRandom* random) {
  std::vector<int32_t> sums(count);
  for (int32_t& sum : sums) {
    const uint64_t bits = random->Below(31);
    sum = static_cast<int32_t>(random->Below(uint64_t{1} << (bits + 1)));
    if (random->Chance(0.3)) {
      // About weight · (odd number of 25 bits) / 2^j.
      const int64_t middle = 2 * static_cast<int64_t>((1 << 24) + random->Below(1 << 23)) + 1;
      int64_t near = weight * middle;
      while (near > INT32_MAX) near = (near + 1) / 2;
      sum = static_cast<int32_t>(near);
    }
    if (random->Chance(0.5)) sum = -sum;
  }
  return sums;
}

TEST_P(BlockApplyTest, MovesAsTheRulesSayOperationByOperation) {
  const PlainFloatScope plain;
  TestRandom random(7);
  const int64_t weights[] = {1, 16, 64, 1024, 3, 1000, 1039, 4096, 65537, 262144, 262143};
  const int exponents[] = {-149, -140, -126, -100, -30, 0, 40, 96, 107};
  const float rates[] = {1.0f, 0.5f, 1.3125f, 0.1f, 0.0f, 1e-38f, 3e38f};
  const auto apply = BlockApplyOf(GetParam()).narrow;
  for (int64_t weight : weights) {
    for (int exponent : exponents) {
      for (float rate : rates) {
        const int values = 1 + static_cast<int>(random.Below(200));
        std::vector<int32_t> sums = Sums(values, weight, &random);
        std::vector<float> anchor = random.Normals(values, std::ldexp(1.0, exponent + 15));
        anchor[0] = -0.0f;
        sums[0] = 0;
        std::vector<float> wanted = anchor;
        for (int i = 0; i < values; ++i) {
          const double scaled = static_cast<double>(sums[i]) * std::ldexp(1.0, exponent);
          const float mean = static_cast<float>(scaled / static_cast<double>(weight));
          const float shift = rate * mean;
          wanted[i] = wanted[i] - shift;
        }
        const std::vector<int32_t> before = sums;
        apply(BlockStep::Of(exponent, weight, rate), sums.data(), values, anchor.data());
        for (int i = 0; i < values; ++i) {
          ASSERT_EQ(BitsOf(anchor[i]), BitsOf(wanted[i]))
              << "sum " << before[i] << " weight " << weight << " exponent " << exponent << " rate " << rate;
          ASSERT_EQ(sums[i], 0);
        }
      }
    }
  }
}

// What tells pairs from sums is only how they are kept.
TEST_P(BlockApplyTest, PairsMoveAsTheirDifferencesDo) {
  const PlainFloatScope plain;
  TestRandom random(8);
  for (int64_t weight : {1024, 1000}) {
    for (int round = 0; round < 200; ++round) {
      const int values = 1 + static_cast<int>(random.Below(200));
      const size_t from = random.Below(17);  // wherever in a line they begin
      std::vector<int16_t> pairs(2 * (from + values));
      std::vector<int32_t> sums(from + values);
      for (int i = 0; i < values; ++i) {
        int16_t* pair = &pairs[2 * (from + i)];
        for (int j = 0; j < 2; ++j) pair[j] = static_cast<int16_t>(random.Below(32768));
        if (random.Chance(0.1)) pair[0] = INT16_MAX;
        if (random.Chance(0.1)) pair[1] = INT16_MAX;
        sums[from + i] = pair[0] - pair[1];
      }
      std::vector<float> anchor = random.Normals(from + values, 10);
      std::vector<float> wanted = anchor;
      const BlockStep step = BlockStep::Of(-12, weight, 1.3125f);
      BlockApplyPortable().narrow(step, sums.data() + from, values, wanted.data() + from);
      BlockApplyOf(GetParam()).pairs(step, pairs.data() + 2 * from, values, anchor.data() + from);
      for (size_t i = 0; i < anchor.size(); ++i) ASSERT_EQ(BitsOf(anchor[i]), BitsOf(wanted[i])) << i;
      ASSERT_EQ(pairs, std::vector<int16_t>(pairs.size()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, BlockApplyTest, ::testing::ValuesIn(kAllSimdPaths),
                         [](const auto& info) { return SimdPathName(info.param); });

TEST(BlockStepTest, PowersOfTwoNeedOneFactorUnlessSomethingLeavesTheNormalNumbers) {
  EXPECT_EQ(BlockStep::Of(-20, 1024, 1.5f).factor, std::ldexp(1.5f, -30));
  EXPECT_EQ(BlockStep::Of(-20, 1000, 1.5f).factor, 0);
  EXPECT_EQ(BlockStep::Of(-120, 1024, 1.0f).factor, 0);
  EXPECT_EQ(BlockStep::Of(107, 1024, 1.0f).factor, 0);
  EXPECT_EQ(BlockStep::Of(-100, 1024, 1e-20f).factor, 0);
  EXPECT_EQ(BlockStep::Of(-20, 1024, 0.0f).factor, 0);
}

}  // namespace
}  // namespace isthmus
