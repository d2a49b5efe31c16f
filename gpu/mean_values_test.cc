#include "gpu/mean_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <iostream>
#include <vector>

#include "compression/test_random.h"

namespace isthmus {
namespace {

TEST(MeanValuesTest, MeansAreTheRoundedQuotient) {
  const int64_t sums[] = {3 * 64, -1, 0, (int64_t{1} << 52) - 1};
  const int32_t weights[] = {3, 0, 5, 1};
  float means[4];
  MeanValuesOf(BestSimdPath())({0.5, 64}, sums, nullptr, 4, means);
  EXPECT_EQ(means[0], 1.5f);
  EXPECT_EQ(means[1], -0.0078125f);
  EXPECT_EQ(means[2], 0.0f);
  EXPECT_EQ(means[3], 0x1p45f);
  MeanValuesOf(BestSimdPath())({0.5, 64}, sums, weights, 4, means);
  EXPECT_EQ(means[0], 32.0f);
  EXPECT_EQ(means[1], 0.0f);
}

TEST(MeanValuesTest, EveryPathGivesThePortableBits) {
  TestRandom random(5);
  for (SimdPath path : kAllSimdPaths) {
    std::cout << (HasSimdPath(path) ? "exercised: " : "NOT EXERCISED, this processor lacks it: ")
              << SimdPathName(path) << "\n";
    if (!HasSimdPath(path)) continue;
    for (int exponent : {-149, -120, -30, 0, 72}) {
      for (int count : {0, 1, 7, 8, 9, 1000}) {
        std::vector<int64_t> sums(count);
        std::vector<int32_t> weights(count);
        for (int i = 0; i < count; ++i) {
          sums[i] = static_cast<int64_t>(random.Next() >> (12 + random.Below(40)));
          if (random.Chance(0.5)) sums[i] = -sums[i];
          weights[i] = static_cast<int32_t>(random.Below(4) * random.Below(300));
        }
        const MeanScale scale{std::ldexp(1.0, exponent), 977};
        for (const int32_t* by :
             {static_cast<const int32_t*>(nullptr), static_cast<const int32_t*>(weights.data())}) {
          std::vector<float> expected(count + 1, 42.0f), means(count + 1, 42.0f);  // one past the end stays
          MeanValuesPortable(scale, sums.data(), by, count, expected.data());
          MeanValuesOf(path)(scale, sums.data(), by, count, means.data());
          EXPECT_EQ(std::memcmp(means.data(), expected.data(), sizeof(float) * means.size()), 0)
              << SimdPathName(path) << ", exponent " << exponent << ", count " << count;
        }
      }
    }
  }
}

}  // namespace
}  // namespace isthmus
