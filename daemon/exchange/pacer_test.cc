#include "daemon/exchange/pacer.h"

#include <vector>

#include "daemon/base/clock.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(5);

TEST(TokenBucket, WithoutALimitEverythingGoesAtOnce) {
  TokenBucket bucket(0, 1000);
  EXPECT_EQ(bucket.Reserve(int64_t{1} << 50, kStart), kStart);
  EXPECT_EQ(bucket.Reserve(1, kStart), kStart);
}

TEST(TokenBucket, ABurstGoesAtOnceAndTheRestAtTheRate) {
  TokenBucket bucket(1000, 500);
  EXPECT_EQ(bucket.Reserve(500, kStart), kStart);
  EXPECT_EQ(bucket.Reserve(250, kStart), kStart + absl::Milliseconds(250));
  EXPECT_EQ(bucket.Reserve(1000, kStart), kStart + absl::Milliseconds(1250));
}

TEST(TokenBucket, IdlingSavesUpNoMoreThanABurst) {
  TokenBucket bucket(1000, 500);
  bucket.Reserve(500, kStart);
  const absl::Time later = kStart + absl::Hours(1);
  EXPECT_EQ(bucket.Reserve(500, later), later);
  EXPECT_EQ(bucket.Reserve(100, later), later + absl::Milliseconds(100));
}

TEST(TokenBucket, APieceLargerThanTheBurstWaitsForWhatIsMissing) {
  TokenBucket bucket(1000, 500);
  EXPECT_EQ(bucket.Reserve(1500, kStart), kStart + absl::Seconds(1));
}

TEST(TokenBucket, KeepsToTheBudgetOverTime) {
  TokenBucket bucket(1e6, 262144);
  absl::Time now = kStart;
  for (int i = 0; i < 1000; ++i) now = bucket.Reserve(262144, now);
  // 1000 pieces, the first of them free.
  EXPECT_NEAR(absl::ToDoubleSeconds(now - kStart), 999 * 0.262144, 1e-3);
}

TEST(Pacer, RunsInOrderWhenDue) {
  FakeClock clock;
  SimLoop loop(&clock);
  const absl::Time start = clock.SteadyNow();
  Pacer pacer(&loop, 20 * 1000);  // burst: a thousand bytes
  std::vector<double> at;
  for (int i = 0; i < 4; ++i) {
    pacer.WhenDue(1000, [&] { at.push_back(absl::ToDoubleSeconds(clock.SteadyNow() - start)); });
  }
  EXPECT_EQ(at, std::vector<double>{0}) << "the first is due within the call";
  loop.RunUntil(start + absl::Seconds(10));
  EXPECT_EQ(at, (std::vector<double>{0, 0.05, 0.1, 0.15}));
}

TEST(Pacer, AFrameOfLessThanAPieceTakesItsTimeAfterAnyPause) {
  FakeClock clock;
  SimLoop loop(&clock);
  Pacer pacer(&loop, 100000);
  for (int i = 0; i < 3; ++i) {
    const absl::Time start = clock.SteadyNow();
    absl::Time went;
    pacer.WhenDue(70000, [&] { went = clock.SteadyNow(); });
    loop.RunUntil(start + absl::Seconds(10));
    EXPECT_EQ(went - start, absl::Milliseconds(650)) << i;
  }
}

TEST(Pacer, PiecesAreAQuarterSecondsWorthWithinBounds) {
  FakeClock clock;
  SimLoop loop(&clock);
  EXPECT_EQ(Pacer(&loop, 0).piece_bytes(), 262144);
  EXPECT_EQ(Pacer(&loop, 1e9).piece_bytes(), 262144);
  EXPECT_EQ(Pacer(&loop, 100000).piece_bytes(), 25000);
  EXPECT_EQ(Pacer(&loop, 100).piece_bytes(), 4096);
}

}  // namespace
}  // namespace isthmus
