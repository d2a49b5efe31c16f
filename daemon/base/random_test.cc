#include "daemon/base/random.h"

#include <gtest/gtest.h>

#include <set>

namespace isthmus {
namespace {

TEST(Mix64, IsTheMixOfSplitMix) {
  // The first outputs of the published generator for the seeds 0 and 1234567.
  constexpr uint64_t kGamma = 0x9E3779B97F4A7C15ull;
  EXPECT_EQ(Mix64(0), 0xE220A8397B1DCDAFull);
  EXPECT_EQ(Mix64(1234567), 6457827717110365317ull);
  EXPECT_EQ(Mix64(1234567 + kGamma), 3203168211198807973ull);
  EXPECT_EQ(Mix64(1234567 + 2 * kGamma), 9817491932198370423ull);
}

TEST(Random, IsTheCounterBasedSequenceOfItsStream) {
  Random random(5, 6);
  for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(random.Next(), RandomAt(5, 6, i));
}

TEST(Random, GivesTheSameNumbersOnEveryMachine) {
  Random random(42);
  EXPECT_EQ(random.Next(), 7138415436909018950ull);
  EXPECT_EQ(random.Next(), 13151335708014940318ull);
  EXPECT_EQ(random.Below(1000), 865);
  EXPECT_EQ(random.Uniform(), 0x56fb6fe24a4f1p-53);
}

TEST(Random, DiffersBySeedStreamAndCounter) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    for (uint64_t stream = 0; stream < 8; ++stream) {
      for (uint64_t counter = 0; counter < 8; ++counter) seen.insert(RandomAt(seed, stream, counter));
    }
  }
  EXPECT_EQ(seen.size(), 512);
}

TEST(Random, GoesOnIndependentlyInACopy) {
  Random a(1), b = a;
  EXPECT_EQ(a.Next(), b.Next());
  a.Next();
  EXPECT_NE(a.Next(), b.Next());
}

TEST(Random, StaysBelowItsBoundAndReachesAllOfIt) {
  Random random(3);
  int counts[7] = {};
  for (int i = 0; i < 70000; ++i) {
    const uint64_t n = random.Below(7);
    ASSERT_LT(n, 7);
    ++counts[n];
  }
  for (int c : counts) EXPECT_NEAR(c, 10000, 400);  // four standard deviations and a little
  EXPECT_EQ(random.Below(1), 0);
}

TEST(Random, IsUniformBetweenZeroAndOne) {
  Random random(4);
  double sum = 0;
  for (int i = 0; i < 100000; ++i) {
    const double u = random.Uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.004);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(random.Chance(0));
    EXPECT_TRUE(random.Chance(1));
  }
}

}  // namespace
}  // namespace isthmus
