// What `isthmus bench round` found: its figures, their medians, the table and the JSON. Pure.
#ifndef ISTHMUS_DAEMON_APP_ROUND_BENCH_REPORT_H_
#define ISTHMUS_DAEMON_APP_ROUND_BENCH_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace isthmus {

// One SIGKILL of a worker.
struct WorkerKill {
  std::string site;
  int64_t round = 0;               // that it fell in
  double phase_fraction = 0;       // how far that round was, of the usual length of one
  bool had_contributed = false;    // to that round already: then its end cannot be late for the kill
  double close_delay_seconds = 0;  // close of that round minus arrival of the last contribution in it
  std::string close_rule;          // "all", "grace", "deadline"
  double later_delay_seconds = 0;  // the same, summed over the later rounds that still expected the dead site
  int64_t later_rounds = 0;        // of these
  double found_dead_seconds = 0;   // from the kill until it was expected no longer
};

// One SIGKILL of the coordinator, started again at once.
struct CoordinatorKill {
  int64_t round = 0;          // that was open
  double phase_fraction = 0;  // how far it was
  double listen_seconds = 0;  // from starting the process until it listened
  double commit_seconds = 0;  // from starting the process until the next commit
  double outage_seconds = 0;  // from the kill until the next commit
  double added_seconds = 0;   // of these, beyond what the round would have taken anyway
};

// One run that was watched for how long its sites had nothing to compute.
struct WaitingRun {
  bool is_overlap_on = true;
  int64_t upload_bytes_per_second = 0;           // 0: no limit
  int64_t rounds = 0;                            // that count
  double round_seconds = 0;                      // median
  double sending_fraction = 0;                   // of a round, to send a frame at the limit
  double compute_seconds = 0, wait_seconds = 0;  // of all sites
  double held_out_loss = 0;                      // at the end

  double waiting_fraction() const {
    return compute_seconds + wait_seconds > 0 ? wait_seconds / (compute_seconds + wait_seconds) : 0;
  }
};

// One run that was watched for its bytes; those per parameter are per round and site.
struct BytesRun {
  int64_t k = 0;  // values kept of 4096
  int64_t parameters = 0, rounds = 0, tokens = 0;
  double frame_up = 0, update_down = 0;    // frames and updates alone, without the last, dense round
  double frames_fraction = 0;              // frames that were counted, of one for each site and round
  double socket_up = 0, socket_down = 0;   // counted on the sites' sockets over the same rounds
  double last_up = 0, last_down = 0;       // frames and updates of the last, dense round
  double loss_before = 0, loss_after = 0;  // held out
};

struct RoundBenchReport {
  int64_t sites = 0, parameters = 0, inner_steps = 0, seed = 0;
  bool is_text_given = false;            // else losses say nothing about language
  double load_average = 0;               // of the machine, at the start
  double quiet_close_delay_seconds = 0;  // median over rounds without a kill
  double usual_round_seconds = 0;        // median over these
  std::vector<WorkerKill> worker_kills;
  std::vector<CoordinatorKill> coordinator_kills;
  std::vector<WaitingRun> waiting;
  std::vector<BytesRun> bytes;
};

// Mean of the middle two when even; 0 of nothing.
double MedianOf(std::vector<double> values);

// Bytes per parameter of the published form: a 12-bit position and a 2-bit value for each of k of 4096.
double PublishedBytesPerParameter(int64_t k);

// Several tables, each with a line above it that says what it shows; parts without figures are left out.
std::string RoundBenchTable(const RoundBenchReport& report);
// One object, indented.
std::string RoundBenchJson(const RoundBenchReport& report);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_ROUND_BENCH_REPORT_H_
