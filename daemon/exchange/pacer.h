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
  // `loop` must outlive the pacer. The burst is a twentieth of a second's worth, which makes up for timers
  // that are late; a frame that is sent after a pause takes its time like any other.
  Pacer(EventLoop* loop, double bytes_per_second);

  // What to ask for at once, so that something goes every quarter second: at most kPieceBytes, at least 4
  // KiB.
  int64_t piece_bytes() const { return piece_bytes_; }

  // Runs `fn` on the loop when `bytes` may go: from within this call when that is now. Whoever may die before
  // guards `fn` itself.
  void WhenDue(int64_t bytes, std::function<void()> fn);

 private:
  EventLoop* const loop_;
  TokenBucket bucket_;
  const int64_t piece_bytes_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_EXCHANGE_PACER_H_
