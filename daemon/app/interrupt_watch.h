// Waiting with Ctrl-C in view: SIGINT and SIGTERM end a wait, so that a command can put away what it started.
#ifndef ISTHMUS_DAEMON_APP_INTERRUPT_WATCH_H_
#define ISTHMUS_DAEMON_APP_INTERRUPT_WATCH_H_

#include <signal.h>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace isthmus {

// One at a time: both signals only mark it, whichever thread they reach, until it is gone. (Blocking them is
// not enough: libraries start threads before main.) Not thread-safe.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  // Returns when `fd` can be read or is at its end (true; −1: never), or `timeout` has passed (false).
  // CANCELLED: a signal came, now or before.
  absl::StatusOr<bool> Wait(int fd, absl::Duration timeout);

 private:
  struct sigaction interrupt_before_, terminate_before_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_INTERRUPT_WATCH_H_
