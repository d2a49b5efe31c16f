// How many inner steps each site does before its next encode, so that frames arrive together (ROUNDS §6).
//
// Pure, not thread-safe.
#ifndef ISTHMUS_DAEMON_ROUNDS_PACE_H_
#define ISTHMUS_DAEMON_ROUNDS_PACE_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/ids.h"

namespace isthmus {

// What is known of one site.
struct SitePace {
  SiteLife life;
  double steps_per_second = 0;  // 0 (or not finite): not known yet, the site gets H
  absl::Duration upload;        // from encode to the frame's arrival; 0 when not known
  absl::Duration other_work;    // this round besides steps: an evaluation it was named for
};

struct SiteSteps {
  SiteLife life;
  int64_t steps = 0;  // 1 … 4·H, counted from its previous encode
};

// T = time the median-speed site (the faster of the middle two) needs for `nominal_steps` (H ≥ 1) and its
// upload, but at most nine tenths of the round's hard deadline; each site gets the steps with which its frame
// arrives by T. In the order given.
std::vector<SiteSteps> PlanSteps(absl::Span<const SitePace> sites, int64_t nominal_steps,
                                 absl::Duration longest_round);

// The T above: what a round should take; zero when no speed is known.
absl::Duration PlannedRound(absl::Span<const SitePace> sites, int64_t nominal_steps,
                            absl::Duration longest_round);

// Learns one site's speed and upload time: medians of the last five measurements.
class PaceLearner {
 public:
  // `steps` inner steps took `busy`. Zero or negative ones are ignored.
  void StepsDone(int64_t steps, absl::Duration busy);
  void Uploaded(absl::Duration duration);

  double steps_per_second() const;  // 0: unknown
  absl::Duration upload() const;    // 0: unknown

 private:
  std::deque<double> speeds_;
  std::deque<absl::Duration> uploads_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_ROUNDS_PACE_H_
