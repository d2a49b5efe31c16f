// How transfers wait between attempts, and which answers are worth another one.
#ifndef ISTHMUS_DAEMON_EXCHANGE_RETRY_PAUSE_H_
#define ISTHMUS_DAEMON_EXCHANGE_RETRY_PAUSE_H_

#include <algorithm>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace isthmus {

// Doubles from 0.2 s to 5 s. Not thread-safe.
class RetryPause {
 public:
  // How long to wait before the next attempt.
  absl::Duration Next() {
    const absl::Duration wait = next_;
    next_ = std::min(next_ * 2, absl::Seconds(5));
    return wait;
  }
  // The last attempt got somewhere: begin again.
  void Reset() { next_ = absl::Milliseconds(200); }

 private:
  absl::Duration next_ = absl::Milliseconds(200);
};

// The peer is away or busy, or the connection broke: another attempt may do better. The last two codes are
// what gRPC makes of some broken connections.
inline bool IsWorthRetrying(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) || absl::IsCancelled(status) ||
         absl::IsUnknown(status);
}

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_EXCHANGE_RETRY_PAUSE_H_
