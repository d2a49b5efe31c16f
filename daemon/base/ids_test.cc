#include "daemon/base/ids.h"

#include <gtest/gtest.h>

namespace isthmus {
namespace {

TEST(SiteLife, OrdersByNameThenIncarnation) {
  EXPECT_LT((SiteLife{"a", 9}), (SiteLife{"b", 1}));
  EXPECT_LT((SiteLife{"a", 1}), (SiteLife{"a", 2}));
  EXPECT_FALSE((SiteLife{"a", 1}) < (SiteLife{"a", 1}));
  EXPECT_EQ((SiteLife{"a", 1}), (SiteLife{"a", 1}));
  EXPECT_NE((SiteLife{"a", 1}), (SiteLife{"a", 2}));
  EXPECT_NE((SiteLife{"a", 1}), (SiteLife{"b", 1}));
}

TEST(RoundKey, OrdersByRoundThenFragment) {
  EXPECT_LT((RoundKey{1, 5}), (RoundKey{2, 0}));
  EXPECT_LT((RoundKey{1, 0}), (RoundKey{1, 1}));
  EXPECT_FALSE((RoundKey{1, 0}) == (RoundKey{1, 1}));
}

}  // namespace
}  // namespace isthmus
