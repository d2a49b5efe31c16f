#include "daemon/base/event_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"

namespace isthmus {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Calls back when it dies.
std::shared_ptr<int> Dying(std::function<void()> at_death) {
  return std::shared_ptr<int>(new int(0), [at_death = std::move(at_death)](int* p) {
    delete p;
    at_death();
  });
}

// Returns once the loop has run all that was posted before.
void Drain(EventLoop* loop) {
  absl::Notification done;
  loop->Post([&] { done.Notify(); });
  done.WaitForNotification();
}

TEST(SimLoop, RunsWhatIsDueInOrderOfTimeAndThenOfAsking) {
  FakeClock clock;
  SimLoop loop(&clock);
  std::string order;
  loop.RunAfter(absl::Seconds(2), [&] { order += "c"; });
  loop.RunAfter(absl::Seconds(1), [&] { order += "b"; });
  loop.RunAfter(absl::Seconds(2), [&] { order += "d"; });
  loop.Post([&] { order += "a"; });
  const absl::Time start = clock.SteadyNow();
  while (loop.RunNext()) order += absl::StrCat(absl::ToInt64Seconds(clock.SteadyNow() - start));
  EXPECT_EQ(order, "a0b1c2d2");
}

TEST(SimLoop, RunsATimerOfThePastSoonAndNotInThePast) {
  FakeClock clock;
  SimLoop loop(&clock);
  const absl::Time start = clock.SteadyNow();
  loop.RunAt(start - absl::Hours(1), [] {});
  EXPECT_TRUE(loop.RunNext());
  EXPECT_EQ(clock.SteadyNow(), start);
}

TEST(SimLoop, RunsUntilADeadlineIncludingWhatBecomesDueMeanwhile) {
  FakeClock clock;
  SimLoop loop(&clock);
  const absl::Time start = clock.SteadyNow();
  int ticks = 0;
  std::function<void()> tick = [&] {
    ++ticks;
    loop.RunAfter(absl::Seconds(1), tick);
  };
  loop.Post(tick);
  loop.RunUntil(start + absl::Seconds(5.5));
  EXPECT_EQ(ticks, 6);
  EXPECT_EQ(clock.SteadyNow(), start + absl::Seconds(5.5));
}

TEST(SimLoop, ForgetsACancelledTimer) {
  FakeClock clock;
  SimLoop loop(&clock);
  bool did_run = false;
  const TimerId id = loop.RunAfter(absl::Seconds(1), [&] { did_run = true; });
  EXPECT_NE(id, 0);
  loop.Cancel(id);
  loop.Cancel(id);
  loop.Cancel(0);
  EXPECT_FALSE(loop.RunNext());
  EXPECT_FALSE(did_run);
}

TEST(SimLoop, NeverRunsATimerAtInfinity) {
  FakeClock clock;
  SimLoop loop(&clock);
  const absl::Time start = clock.SteadyNow();
  bool did_run = false;
  const TimerId id = loop.RunAt(absl::InfiniteFuture(), [&] { did_run = true; });
  EXPECT_NE(id, 0);
  EXPECT_FALSE(loop.RunNext());
  EXPECT_EQ(clock.SteadyNow(), start);
  EXPECT_FALSE(did_run);
  loop.Cancel(id);
}

TEST(SimLoop, LetsWhatATimerHeldUseTheLoopAsItDies) {
  FakeClock clock;
  SimLoop loop(&clock);
  int deaths = 0;
  const TimerId id =
      loop.RunAfter(absl::Seconds(1), [held = Dying([&] { loop.Post([&] { ++deaths; }); })] {});
  loop.Cancel(id);
  EXPECT_TRUE(loop.RunNext());
  EXPECT_EQ(deaths, 1);
}

TEST(SimRunner, WorksAtOnceAndIsDoneAfterTheCostInOrder) {
  FakeClock clock;
  SimLoop loop(&clock);
  const absl::Time start = clock.SteadyNow();
  std::string order;
  SimRunner runner(
      &loop, [](absl::string_view kind) { return kind == "step" ? absl::Seconds(3) : absl::Seconds(1); });
  const auto done = [&](const std::string& name) {
    return [&order, &clock, start, name] {
      order += absl::StrCat(" ", name, absl::ToInt64Seconds(clock.SteadyNow() - start));
    };
  };
  runner.Run(
      "step", [&] { order += "s"; }, done("s"));
  runner.Run(
      "encode", [&] { order += "e"; }, done("e"));
  EXPECT_EQ(order, "s") << "the second waits for the first";
  loop.RunUntil(start + absl::Seconds(10));
  EXPECT_EQ(order, "s s3e e4");
}

TEST(SimRunner, KeepsTheOrderWhenATaskIsAddedFromDone) {
  FakeClock clock;
  SimLoop loop(&clock);
  std::string order;
  SimRunner runner(&loop, [](absl::string_view) { return absl::Seconds(1); });
  runner.Run(
      "a", [&] { order += "a"; },
      [&] {
        runner.Run(
            "c", [&] { order += "c"; }, [] {});
      });
  runner.Run(
      "b", [&] { order += "b"; }, [] {});
  while (loop.RunNext()) {
  }
  EXPECT_EQ(order, "abc");
}

TEST(SimRunner, CallsNobodyAfterItsEnd) {
  FakeClock clock;
  SimLoop loop(&clock);
  bool is_done = false;
  {
    SimRunner runner(&loop, [](absl::string_view) { return absl::Seconds(1); });
    runner.Run(
        "a", [] {}, [&] { is_done = true; });
  }
  while (loop.RunNext()) {
  }
  EXPECT_FALSE(is_done);
}

TEST(SimRunner, MayEndInItsOwnDone) {
  FakeClock clock;
  SimLoop loop(&clock);
  auto runner = std::make_unique<SimRunner>(&loop, [](absl::string_view) { return absl::Seconds(1); });
  bool did_second = false;
  runner->Run(
      "a", [] {}, [&] { runner.reset(); });
  runner->Run(
      "b", [&] { did_second = true; }, [] {});
  while (loop.RunNext()) {
  }
  EXPECT_FALSE(did_second);
}

TEST(ThreadLoop, RunsWhatIsPostedInOrderOnOneThread) {
  RealClock clock;
  ThreadLoop loop(&clock);
  std::vector<int> order;
  std::thread::id thread;
  for (int i = 0; i < 100; ++i) {
    loop.Post([&order, &thread, i] {
      if (i == 0) thread = std::this_thread::get_id();
      if (thread == std::this_thread::get_id()) order.push_back(i);
    });
  }
  Drain(&loop);
  ASSERT_EQ(order.size(), 100);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(ThreadLoop, RunsTimersInOrderOfTimeOnceTheClockGetsThere) {
  FakeClock clock;
  ThreadLoop loop(&clock);
  std::vector<int> order;
  absl::Notification all;
  loop.RunAfter(absl::Seconds(2), [&] {
    order.push_back(2);
    all.Notify();
  });
  loop.RunAfter(absl::Seconds(1), [&] { order.push_back(1); });
  const TimerId cancelled = loop.RunAfter(absl::Seconds(1.5), [&] { order.push_back(99); });
  loop.Cancel(cancelled);
  Drain(&loop);
  EXPECT_THAT(order, IsEmpty());
  clock.Advance(absl::Seconds(2));
  all.WaitForNotification();
  EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST(ThreadLoop, RunsADueTimerEvenWhenItIsNeverIdle) {
  FakeClock clock;
  ThreadLoop loop(&clock);
  bool did_fire = false;
  int rounds = 0;
  absl::Notification end;
  std::function<void()> again = [&] {
    if (did_fire || ++rounds == 1000) return end.Notify();
    if (rounds == 1) {
      loop.RunAfter(absl::Seconds(1), [&] { did_fire = true; });
      clock.Advance(absl::Seconds(2));
    }
    loop.Post(again);
  };
  loop.Post(again);
  end.WaitForNotification();
  Drain(&loop);
  EXPECT_TRUE(did_fire);
  EXPECT_LT(rounds, 1000);
}

TEST(ThreadLoop, LetsWhatATimerHeldUseTheLoopAsItDies) {
  FakeClock clock;
  ThreadLoop loop(&clock);
  absl::Notification died;
  const TimerId id =
      loop.RunAfter(absl::Seconds(1), [held = Dying([&] { loop.Post([&] { died.Notify(); }); })] {});
  loop.Cancel(id);
  died.WaitForNotification();
}

TEST(ThreadLoop, DropsWhatHasNotRunWhenItStops) {
  FakeClock clock;
  bool did_run = false, did_die = false;
  {
    ThreadLoop loop(&clock);
    loop.RunAfter(absl::Seconds(1), [&did_run, held = Dying([&] { did_die = true; })] { did_run = true; });
    loop.Stop();
    loop.Stop();
    clock.Advance(absl::Seconds(5));
    loop.Post([&] { did_run = true; });
  }
  EXPECT_FALSE(did_run);
  EXPECT_TRUE(did_die);
}

TEST(ThreadRunner, WorksOffTheLoopInOrderAndIsDoneOnIt) {
  RealClock clock;
  ThreadLoop loop(&clock);
  std::thread::id loop_thread;
  loop.Post([&] { loop_thread = std::this_thread::get_id(); });
  Drain(&loop);
  ThreadRunner runner(&loop);
  std::vector<int> worked, done;
  absl::Notification all;
  for (int i = 0; i < 10; ++i) {
    runner.Run(
        "step",
        [&, i] {
          if (std::this_thread::get_id() != loop_thread) worked.push_back(i);
        },
        [&, i] {
          if (std::this_thread::get_id() == loop_thread) done.push_back(i);
          if (i == 9) all.Notify();
        });
  }
  all.WaitForNotification();
  EXPECT_THAT(worked, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(done, worked);
}

TEST(ThreadRunner, FinishesTheRunningTaskBeforeItEnds) {
  RealClock clock;
  ThreadLoop loop(&clock);
  absl::Notification started, may_end;
  bool did_finish = false;
  auto runner = std::make_unique<ThreadRunner>(&loop);
  runner->Run(
      "a",
      [&] {
        started.Notify();
        may_end.WaitForNotification();
        did_finish = true;
      },
      [] {});
  started.WaitForNotification();
  std::thread ender([&] { runner.reset(); });
  may_end.Notify();
  ender.join();
  EXPECT_TRUE(did_finish);
}

}  // namespace
}  // namespace isthmus
