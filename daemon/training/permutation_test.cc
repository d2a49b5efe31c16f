#include "daemon/training/permutation.h"

#include <vector>

#include "gtest/gtest.h"

namespace isthmus {
namespace {

TEST(PassPermutationTest, VisitsEverySequenceOnce) {
  for (int64_t n : {1, 2, 3, 5, 64, 1000, 4097}) {
    PassPermutation p(n, 7, 0);
    std::vector<bool> seen(n, false);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = p.At(i);
      ASSERT_GE(at, 0);
      ASSERT_LT(at, n);
      ASSERT_FALSE(seen[at]) << n << " " << i;
      seen[at] = true;
    }
  }
}

TEST(PassPermutationTest, PassesAndSeedsDiffer) {
  PassPermutation a(1000, 7, 0), b(1000, 7, 1), c(1000, 8, 0), again(1000, 7, 0);
  int same_pass = 0, same_seed = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(a.At(i), again.At(i));
    same_pass += a.At(i) == b.At(i);
    same_seed += a.At(i) == c.At(i);
  }
  EXPECT_LT(same_pass, 20);
  EXPECT_LT(same_seed, 20);
}

}  // namespace
}  // namespace isthmus
