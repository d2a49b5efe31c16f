#include "daemon/app/interrupt_watch.h"

#include <pthread.h>
#include <unistd.h>

#include <thread>

#include "gtest/gtest.h"

namespace isthmus {
namespace {

TEST(InterruptWatchTest, WaitingForNothingEndsWithTheTime) {
  InterruptWatch watch;
  const absl::StatusOr<bool> readable = watch.Wait(-1, absl::Milliseconds(1));
  ASSERT_TRUE(readable.ok()) << readable.status();
  EXPECT_FALSE(*readable);
}

TEST(InterruptWatchTest, WhatCanBeReadEndsTheWait) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  InterruptWatch watch;
  EXPECT_FALSE(*watch.Wait(ends[0], absl::ZeroDuration()));
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  EXPECT_TRUE(*watch.Wait(ends[0], absl::Minutes(1)));
  close(ends[1]);
  char x;
  ASSERT_EQ(read(ends[0], &x, 1), 1);
  EXPECT_TRUE(*watch.Wait(ends[0], absl::Minutes(1)));  // its end is something to read, too
  close(ends[0]);
}

TEST(InterruptWatchTest, ASignalEndsThisWaitAndAllLaterOnesWithoutEndingTheProcess) {
  InterruptWatch watch;
  kill(getpid(), SIGTERM);
  EXPECT_EQ(watch.Wait(-1, absl::Minutes(1)).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(watch.Wait(-1, absl::ZeroDuration()).status().message(), "interrupted by a signal");
}

TEST(InterruptWatchTest, AThreadThatWasThereBeforeDoesNotLetTheSignalEndTheProcess) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  // Waits for the pipe's end, with no signal blocked.
  std::thread earlier([&] {
    char x;
    EXPECT_EQ(read(ends[0], &x, 1), 0);
  });
  {
    InterruptWatch watch;
    ASSERT_EQ(pthread_kill(earlier.native_handle(), SIGTERM), 0);
    EXPECT_EQ(watch.Wait(-1, absl::Minutes(1)).status().code(), absl::StatusCode::kCancelled);
  }
  close(ends[1]);
  earlier.join();
  close(ends[0]);
}

TEST(InterruptWatchTest, ASecondWatchKnowsNothingOfTheFirstOnesSignal) {
  {
    InterruptWatch watch;
    kill(getpid(), SIGINT);
    EXPECT_FALSE(watch.Wait(-1, absl::Minutes(1)).ok());
  }
  InterruptWatch watch;
  EXPECT_TRUE(watch.Wait(-1, absl::ZeroDuration()).ok());
}

}  // namespace
}  // namespace isthmus
