// What a run came to, once it has ended: the figures behind the table the demo prints, and the table. Pure.
#ifndef ISTHMUS_DAEMON_APP_SUMMARY_TABLE_H_
#define ISTHMUS_DAEMON_APP_SUMMARY_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "protos/status.pb.h"

namespace isthmus {

// Computed from a status that carries all commits (StatusRequest.all_commits).
struct RunSummary {
  int64_t rounds_committed = 0;
  int64_t rounds_aborted = 0;
  // Rounds that the ledger once numbered and now knows neither as committed nor as aborted nor as open.
  int64_t rounds_lost = 0;
  int64_t tokens = 0;
  double held_out_start = 0, held_out_end = 0;  // of the anchor; 0: not measured

  // Bytes per parameter, round and site, as counted on the coordinator's sockets over the whole process
  // (everything included: frames, updates, snapshots, heartbeats, acknowledgements).
  double socket_up = 0, socket_down = 0;
  // The same for frames and updates alone, of all rounds but the dense last one, and of that one.
  double frame_up = 0, update_down = 0;
  double last_up = 0, last_down = 0;  // 0 when the last round is no special one
  // Dense fp32 once per round over the bytes on the sockets.
  double dense_ratio_up = 0, dense_ratio_down = 0;
  // Computed, not measured: fp32 gradients exchanged at every inner step over the bytes on the sockets.
  double per_step_ratio_up = 0, per_step_ratio_down = 0;
  double steps_per_contribution = 0;

  int64_t digests_compared = 0, digests_deviating = 0;
  double forfeited_fraction = 0;  // of all inner steps whose fate is known
  int64_t forfeited_steps = 0;
  double compute_seconds = 0, wait_seconds = 0;  // of all sites together
};

RunSummary SummarizeRun(const RunStatus& status);

// Two columns: what, and the figure.
std::string SummaryTable(const RunStatus& status);

// A row for each site: rounds it was in and missed, its speed, also against the fastest, and what it
// forfeited.
std::string SiteTable(const RunStatus& status);

// What a finished run must fulfil. Each sentence names what failed and by how much; empty when all holds.
struct RunCriteria {
  int64_t min_rounds = 0;        // committed
  double max_held_out_loss = 0;  // at the end; 0: not asked for
};
std::vector<std::string> UnmetCriteria(const RunStatus& status, const RunCriteria& criteria);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_SUMMARY_TABLE_H_
