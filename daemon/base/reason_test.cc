#include "daemon/base/reason.h"

#include <gtest/gtest.h>

namespace isthmus {
namespace {

TEST(Reason, WritesSitesWithTheirIncarnation) {
  EXPECT_EQ(LifeText({"paris", 3}), "paris/3");
  EXPECT_EQ(LivesText({{"paris", 3}, {"oslo", 1}}), "paris/3, oslo/1");
  EXPECT_EQ(LivesText({}), "nobody");
}

TEST(Reason, WritesDurationsToATenthOfASecond) {
  EXPECT_EQ(SecondsText(absl::Milliseconds(3249)), "3.2 s");
  EXPECT_EQ(SecondsText(absl::Minutes(2)), "120.0 s");
  EXPECT_EQ(SecondsText(absl::ZeroDuration()), "0.0 s");
}

}  // namespace
}  // namespace isthmus
