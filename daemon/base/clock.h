// Time as a seam: the only source of "now" and the only way to wait.
//
// Decision code never asks a clock; it is handed `now`. Everything that does wait or needs a
// timer goes through EventLoop (event_loop.h), which is driven by a Clock.
#ifndef ISTHMUS_DAEMON_BASE_CLOCK_H_
#define ISTHMUS_DAEMON_BASE_CLOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace isthmus {

// Thread-safe. Two readings: Now() is for people (logs, status), SteadyNow() is for decisions.
class Clock {
 public:
  virtual ~Clock() = default;

  // Wall time; may jump. Never used for a decision.
  virtual absl::Time Now() const = 0;

  // Monotonic time. The origin means nothing; only differences do.
  virtual absl::Time SteadyNow() const = 0;

  // Waits, with `mutex` held on entry and exit, until `condition` holds or SteadyNow() reaches
  // `deadline`. Returns whether the condition holds.
  virtual bool AwaitUntil(absl::Mutex* mutex, const absl::Condition& condition, absl::Time deadline) = 0;
};

// The machine's clocks.
class RealClock : public Clock {
 public:
  absl::Time Now() const override;
  absl::Time SteadyNow() const override;
  bool AwaitUntil(absl::Mutex* mutex, const absl::Condition& condition, absl::Time deadline) override;
};

// Stands still until told to move. Declare it before whatever refers to it, so that it dies last.
class FakeClock : public Clock {
 public:
  explicit FakeClock(absl::Time start = absl::UnixEpoch() + absl::Hours(1)) : now_(start) {}

  absl::Time Now() const override;
  absl::Time SteadyNow() const override;
  // Blocks until another thread moves the clock far enough or makes the condition true.
  bool AwaitUntil(absl::Mutex* mutex, const absl::Condition& condition, absl::Time deadline) override;

  // Moves time forward; going back is a programmer's error and does nothing.
  void AdvanceTo(absl::Time t);
  void Advance(absl::Duration d);

 private:
  mutable absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_BASE_CLOCK_H_
