// One loop owns one role's state; everything else posts to it.
//
// A daemon's role (coordinator, worker) is a set of callbacks that run one at a time on its loop, so
// role state needs no locks. Two implementations: ThreadLoop (a thread and a mailbox) and SimLoop (all
// roles of a simulated run on one queue and one fake clock, in an order fixed by the seed).
#ifndef ISTHMUS_DAEMON_BASE_EVENT_LOOP_H_
#define ISTHMUS_DAEMON_BASE_EVENT_LOOP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"

namespace isthmus {

using TimerId = int64_t;  // 0 is never a timer.

class EventLoop {
 public:
  virtual ~EventLoop() = default;

  // Runs `fn` on the loop, after what was posted before. Any thread.
  virtual void Post(std::function<void()> fn) = 0;

  // Runs `fn` on the loop at steady time `when` (soon, when that has passed; never at InfiniteFuture). Any
  // thread.
  virtual TimerId RunAt(absl::Time when, std::function<void()> fn) = 0;

  // Forgets a timer; one that already ran, or 0, is ignored. Any thread.
  virtual void Cancel(TimerId id) = 0;

  virtual Clock& clock() = 0;

  TimerId RunAfter(absl::Duration d, std::function<void()> fn) {
    return RunAt(clock().SteadyNow() + d, std::move(fn));
  }
};

// Long work off the loop: inner steps, encoding, summing, writing. Tasks of one runner run one at a
// time in the order given, so what they touch is owned by the runner while they run.
class TaskRunner {
 public:
  virtual ~TaskRunner() = default;

  // Runs `work` off the loop, then `done` on the loop. `kind` names the work ("step", "encode") for
  // measurements, and in simulation for its cost.
  virtual void Run(absl::string_view kind, std::function<void()> work, std::function<void()> done) = 0;
};

// A loop on a thread of its own. Destruction stops it: what was posted but has not run is dropped.
class ThreadLoop : public EventLoop {
 public:
  // `clock` must outlive the loop.
  explicit ThreadLoop(Clock* clock);
  ~ThreadLoop() override;

  void Post(std::function<void()> fn) override;
  TimerId RunAt(absl::Time when, std::function<void()> fn) override;
  void Cancel(TimerId id) override;
  Clock& clock() override { return *clock_; }

  // Ends the thread; idempotent. Must not be called from the loop itself.
  void Stop();

 private:
  void Main();
  bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_ || changed_; }

  Clock* const clock_;
  absl::Mutex mutex_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  // Keyed by (due, id): what is due first, and among equals what came first, runs first.
  std::map<std::pair<absl::Time, TimerId>, std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  std::map<TimerId, absl::Time> due_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// A thread that works through tasks in order. Destruction finishes the running task and drops the rest.
class ThreadRunner : public TaskRunner {
 public:
  // `loop` receives the done callbacks and must outlive the runner.
  explicit ThreadRunner(EventLoop* loop);
  ~ThreadRunner() override;

  void Run(absl::string_view kind, std::function<void()> work, std::function<void()> done) override;

 private:
  struct Task {
    std::function<void()> work, done;
  };
  void Main();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_ || !tasks_.empty(); }

  EventLoop* const loop_;
  absl::Mutex mutex_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// All of a simulated run on one queue. Not thread-safe: one thread builds and drives it.
class SimLoop : public EventLoop {
 public:
  explicit SimLoop(FakeClock* clock) : clock_(clock) {}

  void Post(std::function<void()> fn) override;
  TimerId RunAt(absl::Time when, std::function<void()> fn) override;
  void Cancel(TimerId id) override;
  Clock& clock() override { return *clock_; }

  // Moves the clock to the next event and runs it. False when nothing is left that will ever be due.
  bool RunNext();

  // Runs what is due up to `deadline`, then moves the clock there.
  void RunUntil(absl::Time deadline);

 private:
  FakeClock* const clock_;
  int64_t next_id_ = 1;
  std::map<std::pair<absl::Time, TimerId>, std::function<void()>> queue_;
  std::map<TimerId, absl::Time> due_;
};

// Work done at once, its done callback after the time it would have taken. Tasks queue behind each other.
class SimRunner : public TaskRunner {
 public:
  using Cost = std::function<absl::Duration(absl::string_view kind)>;
  // `loop` must outlive the runner; `cost` is asked once per task.
  SimRunner(EventLoop* loop, Cost cost);
  ~SimRunner() override;

  void Run(absl::string_view kind, std::function<void()> work, std::function<void()> done) override;

 private:
  void StartNext();

  struct Task {
    std::string kind;
    std::function<void()> work, done;
  };
  EventLoop* const loop_;
  const Cost cost_;
  bool is_busy_ = false;
  std::vector<Task> tasks_;
  // Shared with callbacks in the loop's queue, which may run after the runner is gone.
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_BASE_EVENT_LOOP_H_
