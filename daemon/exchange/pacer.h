// Keeps the data path to its budget of bytes per second, so that it starves nobody.
#ifndef ISTHMUS_DAEMON_EXCHANGE_PACER_H_
#define ISTHMUS_DAEMON_EXCHANGE_PACER_H_

#include <cstdint>
#include <functional>

#include "absl/time/time.h"
#include "daemon/base/event_loop.h"

namespace isthmus {

// When bytes may go, as a function of when they were asked for. Pure; not thread-safe.
class TokenBucket {
 public:
  // `bytes_per_second` 0: no limit. After idling, up to `burst_bytes` go at once.
  TokenBucket(double bytes_per_second, int64_t burst_bytes)
      : bytes_per_second_(bytes_per_second), burst_bytes_(burst_bytes) {}

  // Takes `bytes` from the budget; they may go at the time returned (`now` or later). First come, first
  // served.
  absl::Time Reserve(int64_t bytes, absl::Time now);

 private:
  const double bytes_per_second_;
  const int64_t burst_bytes_;
  // When all that was reserved so far is paid for. In the past: that much is saved up, at most a burst.
  absl::Time paid_until_ = absl::InfinitePast();
};

// A budget on a loop, shared by the transfers of one side. Not thread-safe.
class Pacer {
 public:
  // `loop` must outlive the pacer. The burst is a quarter second's worth, but one piece at least.
  Pacer(EventLoop* loop, double bytes_per_second);

  // Runs `fn` on the loop when `bytes` may go: from within this call when that is now. Whoever may die before
  // guards `fn` itself.
  void WhenDue(int64_t bytes, std::function<void()> fn);

 private:
  EventLoop* const loop_;
  TokenBucket bucket_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_EXCHANGE_PACER_H_
