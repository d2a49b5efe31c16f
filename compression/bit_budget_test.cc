#include "compression/bit_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "compression/test_random.h"

namespace isthmus {
namespace {

double PositionBits(int k) { return static_cast<double>(PositionCost(k)) / kPartsPerBit; }

TEST(BitBudgetTest, PositionsCostTheLogarithmOfTheirChoices) {
  EXPECT_EQ(PositionBits(0), 0);
  EXPECT_EQ(PositionBits(1), 12);
  EXPECT_NEAR(PositionBits(2), 23 - 1 / (4096 * std::log(2)), 0.01);
  EXPECT_NEAR(PositionBits(16) / 16, 9.232, 0.001);
  EXPECT_NEAR(PositionBits(64) / 64, 7.364, 0.001);
  EXPECT_NEAR(PositionBits(256) / 256, 5.376, 0.001);
  EXPECT_EQ(PositionCost(64), PositionCost(4096 - 64));
  EXPECT_EQ(PositionBits(4096), 0);
  for (int k : {1, 7, 64, 500, 2048}) {
    const double exact = (std::lgamma(4097) - std::lgamma(k + 1) - std::lgamma(4097 - k)) / std::log(2);
    EXPECT_NEAR(PositionBits(k), exact, 1.5 / kPartsPerBit) << k;
  }
}

TEST(BitBudgetTest, WiderValuesLeaveRoomForFewer) {
  // 599 bits of positions and values are 73, 63 or 56 kept values of one, two or three bits.
  for (const auto& [bits, k] : {std::pair{1, 73}, {2, 63}, {3, 56}}) {
    const int64_t cost = 599 * kPartsPerBit;
    EXPECT_LE(PositionCost(k) + k * bits * kPartsPerBit, cost);
    EXPECT_GT(PositionCost(k + 1) + (k + 1) * bits * kPartsPerBit, cost);
    EXPECT_EQ(KeptWithin(cost + (kLevelBits << (bits - 1)) * kPartsPerBit, bits), k);
  }
}

TEST(BitBudgetTest, TheCostIsNeverPassedNorIsThereRoomForOneMore) {
  for (int bits : {1, 2, 3}) {
    for (int k : {1, 2, 16, 64, 256, 1000, 2000}) {
      const int64_t cost = BlockCost(k, 1);
      const int kept = KeptWithin(cost, bits);
      EXPECT_TRUE(kept == 1 || BlockCost(kept, bits) <= cost) << k << " at " << bits;
      EXPECT_GT(BlockCost(kept + 1, bits), cost) << k << " at " << bits;
      EXPECT_EQ(KeptAtEqualCost(k, bits, bits), k);
    }
  }
  EXPECT_EQ(KeptWithin(0, 3), 1);
  EXPECT_EQ(KeptWithin(int64_t{1} << 40, 2), 4096);
}

TEST(BitBudgetTest, TheCostNeverFalls) {
  for (int bits : {1, 2, 3}) {
    for (int k = 1; k < 4096; ++k) ASSERT_LE(BlockCost(k, bits), BlockCost(k + 1, bits)) << k;
  }
}

TEST(BitBudgetTest, SymbolsCostTheirEntropy) {
  EXPECT_EQ(SymbolCost({}), 0);
  EXPECT_EQ(SymbolCost({0, 77, 0}), 0);
  EXPECT_EQ(SymbolCost({4, 4, 4, 4}), 32 * kPartsPerBit);
  EXPECT_EQ(SymbolCost({2, 12, 2}), 20 * kPartsPerBit);  // 12 · 1 + 4 · 2
  EXPECT_EQ(SymbolCost({100, 1000, 0, 10}),
            1220 * kPartsPerBit);  // 1000 · 1 + 100 · 2 + 10 · 2
  const double three = 3 * 0x1p29 * std::log2(3) * kPartsPerBit;
  EXPECT_NEAR(static_cast<double>(SymbolCost({1 << 29, 1 << 29, 1 << 29})), three, three * 1e-7);
}

int64_t CostOf(const std::vector<EnergyClaim>& claims, const std::vector<int>& kept, int bits) {
  int64_t cost = 0;
  for (size_t i = 0; i < claims.size(); ++i) {
    if (claims[i].energy > 0) cost += claims[i].values * BlockCost(kept[i], bits);
  }
  return cost;
}

TEST(ShareByEnergyTest, EqualEnergiesGiveTheUniformShare) {
  const std::vector<EnergyClaim> claims = {{100, 0.3}, {1 << 20, 0.3}, {5000, 0.3}};
  for (int k : {1, 16, 64, 4096}) EXPECT_EQ(ShareByEnergy(claims, k, 1), std::vector<int>(3, k));
}

TEST(ShareByEnergyTest, OneTensorKeepsItsOwn) {
  EXPECT_EQ(ShareByEnergy({{12345, 1e-12}}, 64, 2), std::vector<int>{64});
  EXPECT_EQ(ShareByEnergy({{12345, 1e70}}, 64, 2), std::vector<int>{64});
}

TEST(ShareByEnergyTest, ATensorWithoutEnergyHasNoPartInTheBudget) {
  EXPECT_EQ(ShareByEnergy({{1 << 20, 0}, {4096, 2}}, 64, 1), (std::vector<int>{16, 64}));
  EXPECT_EQ(ShareByEnergy({{1 << 20, 0}, {4096, 0}}, 64, 1), (std::vector<int>{64, 64}));
  EXPECT_EQ(ShareByEnergy({}, 64, 1), std::vector<int>());
}

TEST(ShareByEnergyTest, KIsInProportionBetweenItsLimits) {
  // Where k doubles the cost does not quite, so the louder of two of equal size has a little over twice.
  const std::vector<int> two = ShareByEnergy({{1 << 20, 1}, {1 << 20, 2}}, 60, 1);
  EXPECT_NEAR(two[1], 2 * two[0], 2);
  EXPECT_GT(two[0] + two[1], 120);
  const std::vector<int> far = ShareByEnergy({{1 << 24, 1e-30}, {4096, 1}, {1 << 24, 1e-5}}, 64, 1);
  EXPECT_EQ(far[0], 16);
  EXPECT_EQ(far[1], 256);
  EXPECT_EQ(ShareByEnergy({{4096, 1e-9}, {4096, 1}}, 2, 1)[0], 1);
}

TEST(ShareByEnergyTest, TheBudgetIsKeptAndKeptValuesFollowEnergy) {
  TestRandom random(5);
  for (int round = 0; round < 200; ++round) {
    const int k = 1 + static_cast<int>(random.Below(300)), bits = 1 + round % 3;
    std::vector<EnergyClaim> claims(2 + random.Below(30));
    for (EnergyClaim& claim : claims) {
      claim.values = 1 + static_cast<int64_t>(std::exp(16 * random.Uniform()));
      claim.energy = std::exp(4 * random.Normal());
    }
    const std::vector<int> kept = ShareByEnergy(claims, k, bits);
    const int64_t budget = CostOf(claims, std::vector<int>(claims.size(), k), bits);
    const int64_t cost = CostOf(claims, kept, bits);
    ASSERT_LE(cost, budget);
    int64_t dearest = 0;  // step of a tensor that may have more
    for (size_t i = 0; i < claims.size(); ++i) {
      EXPECT_GE(kept[i], std::max(1, (k + 3) / 4));
      EXPECT_LE(kept[i], std::min(4 * k, 4096));
      if (kept[i] < std::min(4 * k, 4096)) {
        dearest =
            std::max(dearest, claims[i].values * (BlockCost(kept[i] + 1, bits) - BlockCost(kept[i], bits)));
      }
      for (size_t j = 0; j < claims.size(); ++j) {
        EXPECT_TRUE(claims[i].energy < claims[j].energy || kept[i] >= kept[j]) << i << ", " << j;
      }
    }
    EXPECT_LT(budget - cost, std::max<int64_t>(dearest, 1)) << "round " << round;
  }
}

}  // namespace
}  // namespace isthmus
