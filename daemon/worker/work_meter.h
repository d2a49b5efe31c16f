// Splits a worker's life into time with something to compute and time without.
#ifndef ISTHMUS_DAEMON_WORKER_WORK_METER_H_
#define ISTHMUS_DAEMON_WORKER_WORK_METER_H_

#include "absl/time/time.h"

namespace isthmus {

// Not thread-safe. Times are steady. Counting begins with the first SetBusy.
class WorkMeter {
 public:
  void SetBusy(bool is_busy, absl::Time now) {
    Advance(now);
    is_busy_ = is_busy;
    is_running_ = true;
  }

  void Advance(absl::Time now) {
    if (is_running_ && now > since_) (is_busy_ ? busy_ : waiting_) += now - since_;
    since_ = now;
  }

  absl::Duration busy() const { return busy_; }
  absl::Duration waiting() const { return waiting_; }

 private:
  bool is_running_ = false, is_busy_ = false;
  absl::Time since_;
  absl::Duration busy_, waiting_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_WORKER_WORK_METER_H_
