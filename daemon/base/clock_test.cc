#include "daemon/base/clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace isthmus {
namespace {

TEST(FakeClock, StandsStillUntilToldToMove) {
  FakeClock clock;
  const absl::Time start = clock.SteadyNow();
  EXPECT_EQ(clock.SteadyNow(), start);
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(clock.SteadyNow() - start, absl::Seconds(5));
  EXPECT_EQ(clock.Now(), clock.SteadyNow());
}

TEST(FakeClock, NeverGoesBack) {
  FakeClock clock(absl::UnixEpoch() + absl::Seconds(10));
  clock.AdvanceTo(absl::UnixEpoch());
  clock.Advance(absl::Seconds(-3));
  EXPECT_EQ(clock.SteadyNow(), absl::UnixEpoch() + absl::Seconds(10));
  clock.AdvanceTo(absl::UnixEpoch() + absl::Seconds(11));
  EXPECT_EQ(clock.SteadyNow(), absl::UnixEpoch() + absl::Seconds(11));
}

TEST(FakeClock, WaitsUntilItIsMovedToTheDeadline) {
  FakeClock clock;
  const absl::Time deadline = clock.SteadyNow() + absl::Hours(5);
  std::thread mover([&] { clock.Advance(absl::Hours(5)); });
  absl::Mutex mutex;
  bool is_done = false;
  absl::MutexLock lock(&mutex);
  EXPECT_FALSE(clock.AwaitUntil(&mutex, absl::Condition(&is_done), deadline));
  EXPECT_EQ(clock.SteadyNow(), deadline);
  mover.join();
}

template <typename C>
class AnyClockTest : public testing::Test {};
using Clocks = testing::Types<RealClock, FakeClock>;
TYPED_TEST_SUITE(AnyClockTest, Clocks);

TYPED_TEST(AnyClockTest, EndsAWaitWhenTheConditionComesTrue) {
  TypeParam clock;
  absl::Mutex mutex;
  bool is_done = false;
  std::thread setter([&] {
    absl::MutexLock lock(&mutex);
    is_done = true;
  });
  {
    absl::MutexLock lock(&mutex);
    EXPECT_TRUE(clock.AwaitUntil(&mutex, absl::Condition(&is_done), absl::InfiniteFuture()));
    EXPECT_TRUE(clock.AwaitUntil(&mutex, absl::Condition(&is_done), absl::InfinitePast()));
  }
  setter.join();
}

TYPED_TEST(AnyClockTest, EndsAWaitAtADeadlineThatHasPassed) {
  TypeParam clock;
  absl::Mutex mutex;
  const bool is_done = false;
  absl::MutexLock lock(&mutex);
  EXPECT_FALSE(clock.AwaitUntil(&mutex, absl::Condition(&is_done), clock.SteadyNow()));
  EXPECT_FALSE(clock.AwaitUntil(&mutex, absl::Condition(&is_done), absl::InfinitePast()));
}

TYPED_TEST(AnyClockTest, HasASteadyTimeThatDoesNotGoBack) {
  TypeParam clock;
  absl::Time last = clock.SteadyNow();
  for (int i = 0; i < 1000; ++i) {
    const absl::Time now = clock.SteadyNow();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(RealClock, KeepsWaitingUntilTheDeadline) {
  RealClock clock;
  absl::Mutex mutex;
  const bool is_done = false;
  absl::MutexLock lock(&mutex);
  const absl::Time deadline = clock.SteadyNow() + absl::Milliseconds(5);
  EXPECT_FALSE(clock.AwaitUntil(&mutex, absl::Condition(&is_done), deadline));
  EXPECT_GE(clock.SteadyNow(), deadline);
}

}  // namespace
}  // namespace isthmus
