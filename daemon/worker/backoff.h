// How long to wait before the next try: doubling, with jitter, bounded.
#ifndef ISTHMUS_DAEMON_WORKER_BACKOFF_H_
#define ISTHMUS_DAEMON_WORKER_BACKOFF_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "daemon/base/random.h"

namespace isthmus {

// Pure: the seed fixes the jitter. Not thread-safe.
class Backoff {
 public:
  Backoff(absl::Duration first, absl::Duration longest, uint64_t seed)
      : first_(first), longest_(longest), random_(seed) {}

  // Between half and the whole of first · 2^n, never above the longest.
  absl::Duration Next() {
    absl::Duration d = longest_;
    if (tries_ < 20) d = std::min(longest_, first_ * (int64_t{1} << tries_));
    ++tries_;
    return d * (0.5 + 0.5 * random_.Uniform());
  }

  void Reset() { tries_ = 0; }
  int tries() const { return tries_; }

 private:
  absl::Duration first_, longest_;
  Random random_;
  int tries_ = 0;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_WORKER_BACKOFF_H_
