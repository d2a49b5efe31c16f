// How long to wait after quorum, learned from how late the last arrivals were (ROUNDS §6).
//
// grace = median + 4 · MAD of the lateness over the last 16 rounds, held between 10 % and 50 % of their
// median duration. Pure, not thread-safe.
#ifndef ISTHMUS_DAEMON_ROUNDS_GRACE_H_
#define ISTHMUS_DAEMON_ROUNDS_GRACE_H_

#include <deque>
#include <optional>

#include "absl/time/time.h"
#include "daemon/base/ids.h"

namespace isthmus {

class GraceLearner {
 public:
  // A round closed. `lateness`: last arrival after the quorum (0 when the last one made it); `duration`: from
  // its opening to its close. Aborted rounds teach nothing.
  void RoundClosed(RoundId round, absl::Duration lateness, absl::Duration duration);

  // A frame made for a closed round came after all, this long after that round's quorum: without this a grace
  // that is too short would never learn that it is. Unknown rounds and smaller values change nothing.
  void LateArrival(RoundId round, absl::Duration lateness);

  // nullopt until three rounds were seen.
  std::optional<absl::Duration> Grace() const;
  // Of the rounds seen; zero when there are none.
  absl::Duration MedianDuration() const;

 private:
  struct Sample {
    RoundId round = 0;
    absl::Duration lateness, duration;
  };
  std::deque<Sample> samples_;  // at most 16
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_ROUNDS_GRACE_H_
