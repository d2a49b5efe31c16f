#include "daemon/app/sample_status.h"

#include <google/protobuf/text_format.h>

namespace isthmus {
namespace {

constexpr char kSample[] = R"pb(
  run_name: "kjv"
  run_id: "kjv-01"
  phase: "ROUND_OPEN"
  round: 3
  waiting_for: "site-slow (1 of 2 in): quorum is 2 of 3, 41.2 s are left"
  parameters: 1000000
  codec: "topk(k=512,block=4096)|levels(bits=1)|gaps|zstd(1)"
  error_feedback: "SEPARATE x 0.95"
  rounds_committed: 2
  rounds_aborted: 0
  contributions_refused: 1
  tokens: 71680
  total_rounds: 50
  state_digest: "\001#Eg\211\253\315\357\000\021\"3DUfw"
  disk_bytes: 4200000
  disk_bound_bytes: 30000000
  bytes_in: 450000
  bytes_out: 1200000
  traffic { kind: CONTROL bytes_up: 9000 bytes_down: 21000 }
  traffic { kind: CONTRIBUTION bytes_up: 420000 }
  traffic { kind: UPDATE bytes_down: 740000 codec: "exact" }
  forfeited_square_sum: 0.5
  forfeited_steps: 20
  sequences_trained: 560
  sequences_trained_again: 12
  held_out_loss_start: 5.5487
  digests_compared: 5
  digests_deviating: 0
  seconds_since_open: 2.5
  run_restarts: 1
  sites {
    site: "site-a"
    incarnation: 1
    state: "active"
    has_contributed: true
    rounds_included: 2
    contributed_steps: 60
    progress {
      inner_steps: 75
      tokens: 38400
      steps_per_second: 9.5
      tokens_per_second: 4864
      loss: 2.71
      compute_seconds: 7.9
      wait_seconds: 0.25
      activity: "training"
      bytes_out: 180000
      bytes_in: 4300000
      round_trip_seconds: 0.0012
    }
  }
  sites {
    site: "site-b"
    incarnation: 2
    state: "dead"
    rounds_included: 1
    rounds_missed: 1
    contributed_steps: 30
    silence_seconds: 6.5
    last_miss_reason: "died in round 2"
    forfeited_steps: 20
    progress {
      inner_steps: 50
      tokens: 25600
      steps_per_second: 9.1
      tokens_per_second: 4659
      loss: 2.75
      compute_seconds: 5.4
      bytes_out: 90000
      bytes_in: 4200000
      round_trip_seconds: 0.0009
    }
  }
  sites {
    site: "site-slow"
    incarnation: 1
    state: "active"
    rounds_included: 2
    contributed_steps: 20
    progress { inner_steps: 24 tokens: 12288 is_frame_pending: true activity: "waiting for a data lease" }
  }
  commits {
    round: 1
    included: 3
    expected: 3
    close_kind: ALL_ARRIVED
    reason: "round 1 closed: all 3 expected arrived"
    state_digest: "\377\356\335\314\273\252\231\210wfUD3\"\021\000"
    training_loss: 3.61
    held_out_loss: 3.12
    held_out_tokens: 8192
    tokens: 35840
    tokens_per_second: 9800
    bytes_up: 252000
    bytes_down: 510000
    round_seconds: 3.66
    compute_seconds: 10.5
    wait_seconds: 0.4
    slowest_site: "site-slow"
    steps: 70
  }
  commits {
    round: 2
    included: 2
    expected: 2
    close_kind: QUORUM_AND_GRACE
    reason: "2 of 2 expected arrived (site-b died)"
    state_digest: "\001#Eg\211\253\315\357\000\021\"3DUfw"
    training_loss: 2.74
    tokens: 20480
    tokens_per_second: 5600
    bytes_up: 168000
    bytes_down: 230000
    round_seconds: 3.65
    compute_seconds: 7.1
    wait_seconds: 0.1
    slowest_site: "site-slow"
    steps: 40
  }
)pb";

}  // namespace

RunStatus SampleStatus() {
  RunStatus status;
  google::protobuf::TextFormat::ParseFromString(kSample, &status);
  return status;
}

RunStatus SampleFinishedStatus() {
  RunStatus status = SampleStatus();
  status.set_phase("FINISHED");
  status.set_waiting_for("");
  status.set_held_out_loss_end(1.6789);
  status.set_rounds_committed(3);
  CommitSummary* last = status.add_commits();
  last->set_round(3);
  last->set_included(2);
  last->set_expected(2);
  last->set_close_kind(ALL_ARRIVED);
  last->set_reason("last round: all 2 expected arrived");
  last->set_training_loss(1.75);
  last->set_held_out_loss(1.7);
  last->set_held_out_tokens(8192);
  last->set_tokens(20480);
  last->set_bytes_up(6000000);
  last->set_bytes_down(6100000);
  last->set_compute_seconds(7);
  last->set_steps(40);
  last->set_is_last(true);
  return status;
}

}  // namespace isthmus
