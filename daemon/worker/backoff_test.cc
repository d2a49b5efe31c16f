#include "daemon/worker/backoff.h"

#include "gtest/gtest.h"

namespace isthmus {
namespace {

TEST(BackoffTest, WaitsDoubleWithinHalfAndWholeUpToTheLongest) {
  Backoff backoff(absl::Seconds(1), absl::Seconds(10), 3);
  for (double whole : {1.0, 2.0, 4.0, 8.0, 10.0, 10.0}) {
    const double wait = absl::ToDoubleSeconds(backoff.Next());
    EXPECT_GE(wait, whole / 2);
    EXPECT_LE(wait, whole);
  }
  EXPECT_EQ(backoff.tries(), 6);
}

TEST(BackoffTest, ManyTriesDoNotOverflow) {
  Backoff backoff(absl::Seconds(1), absl::Seconds(10), 3);
  for (int i = 0; i < 100; ++i) EXPECT_LE(backoff.Next(), absl::Seconds(10));
  EXPECT_GE(backoff.Next(), absl::Seconds(5));
}

TEST(BackoffTest, AResetBeginsAgainAndASeedFixesTheJitter) {
  Backoff one(absl::Seconds(1), absl::Seconds(10), 3), same(absl::Seconds(1), absl::Seconds(10), 3),
      other(absl::Seconds(1), absl::Seconds(10), 4);
  const absl::Duration first = one.Next();
  EXPECT_EQ(first, same.Next());
  EXPECT_NE(first, other.Next());
  one.Next();
  one.Reset();
  EXPECT_EQ(one.tries(), 0);
  EXPECT_LE(one.Next(), absl::Seconds(1));
}

}  // namespace
}  // namespace isthmus
