#include "daemon/base/clock.h"

#include <time.h>

#include <algorithm>

#include "absl/time/clock.h"

namespace isthmus {

absl::Time RealClock::Now() const { return absl::Now(); }

absl::Time RealClock::SteadyNow() const {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return absl::TimeFromTimespec(t);
}

bool RealClock::AwaitUntil(absl::Mutex* mutex, const absl::Condition& condition, absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) {
    mutex->Await(condition);
    return true;
  }
  return mutex->AwaitWithTimeout(condition, deadline - SteadyNow());
}

absl::Time FakeClock::Now() const { return SteadyNow(); }

absl::Time FakeClock::SteadyNow() const {
  absl::MutexLock lock(&mutex_);
  return now_;
}

bool FakeClock::AwaitUntil(absl::Mutex* mutex, const absl::Condition& condition, absl::Time deadline) {
  // The caller's mutex cannot wait for a time kept under ours, so look again at short real intervals.
  while (!condition.Eval()) {
    if (SteadyNow() >= deadline) return false;
    mutex->AwaitWithTimeout(condition, absl::Milliseconds(1));
  }
  return true;
}

void FakeClock::AdvanceTo(absl::Time t) {
  absl::MutexLock lock(&mutex_);
  now_ = std::max(now_, t);
}

void FakeClock::Advance(absl::Duration d) {
  absl::MutexLock lock(&mutex_);
  if (d > absl::ZeroDuration()) now_ += d;
}

}  // namespace isthmus
