// Running something on a loop's thread and waiting for it.
#ifndef ISTHMUS_DAEMON_APP_LOOP_CALL_H_
#define ISTHMUS_DAEMON_APP_LOOP_CALL_H_

#include <functional>

#include "absl/synchronization/notification.h"
#include "daemon/base/event_loop.h"

namespace isthmus {

// Returns when `fn` has run. Not from the loop itself.
inline void CallOnLoop(EventLoop* loop, const std::function<void()>& fn) {
  absl::Notification done;
  loop->Post([&] {
    fn();
    done.Notify();
  });
  done.WaitForNotification();
}

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_LOOP_CALL_H_
