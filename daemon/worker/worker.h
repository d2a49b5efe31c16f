// The worker role: joins a run, trains, contributes, applies what is committed (ROUNDS §5), and never stops
// training for the network's sake.
//
// One event loop owns all of it. Everything that touches the replica runs as a task of `compute`, one at a
// time; between tasks Pump decides what comes next: catching up, a commit to apply, an evaluation, an encode,
// and otherwise an inner step.
#ifndef ISTHMUS_DAEMON_WORKER_WORKER_H_
#define ISTHMUS_DAEMON_WORKER_WORKER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/event_loop.h"
#include "daemon/base/logging.h"
#include "daemon/exchange/transport.h"
#include "daemon/store/snapshot.h"
#include "daemon/training/schedule.h"
#include "daemon/worker/backoff.h"
#include "daemon/worker/commit_queue.h"
#include "daemon/worker/lease_book.h"
#include "daemon/worker/replica.h"
#include "daemon/worker/work_meter.h"
#include "gpu/device_ops.h"
#include "protos/run.pb.h"

namespace isthmus {

struct WorkerSettings {
  std::string site;
  std::string run_name;
  std::string software = "isthmus";
  double max_tokens_per_second = 0;                  // people share their machines; 0: as fast as it goes
  absl::Duration give_up_after = absl::Minutes(10);  // without a session
  absl::Duration dial_timeout = absl::Seconds(10);
  absl::Duration transfer_timeout = absl::Hours(1);  // of one frame or blob, retries included
  uint64_t seed = 1;                                 // jitter of the back-off
  int64_t flip_anchor_bit_after_round = 0;           // planted defect for tests; 0: none
};

// Builds the model and opens the data once the run file is known. Runs as a compute task.
using ReplicaMaker = std::function<absl::StatusOr<Replica::Parts>(const RunFile& run)>;

class Worker : public WorkerLink::Listener {
 public:
  // All must outlive the worker, except that `compute` must be gone (or idle for good) before it.
  struct Seams {
    EventLoop* loop = nullptr;
    WorkerLink* link = nullptr;
    TaskRunner* compute = nullptr;
    DeviceOps* ops = nullptr;
  };

  // `ended` is called once, on the loop: OK when the run finished or the worker left, else why it cannot go
  // on.
  Worker(Seams seams, WorkerSettings options, ReplicaMaker make_replica,
         std::function<void(absl::Status)> ended);
  ~Worker() override;

  // On the loop, like every method.
  void Start();
  // Contributes what it has to the open round if it can, waits for the outcome, and goes.
  void Leave(const std::string& reason);

  SiteProgress Progress();
  // For tests between events; null before the model is built.
  const Replica* replica() const { return replica_.get(); }
  Replica* mutable_replica() { return replica_.get(); }
  int64_t anchor_round() const { return anchor_round_; }
  bool has_ended() const { return has_ended_; }
  bool is_leaving() const { return !leaving_.empty(); }
  // The frame on its way, as it decodes, and whether it has its right; null when there is none.
  const DecodedFrame* pending_frame() const;
  // Frames that came to nothing and that the replica has not taken back yet: the next task begins with it.
  const std::vector<std::shared_ptr<const DecodedFrame>>& returned_frames() const { return returned_; }
  // A task makes a frame, which is not pending before it is done.
  bool is_encoding() const { return is_encoding_; }
  bool has_pending_right() const { return pending_ && pending_->has_right; }
  int64_t pending_steps() const { return pending_ ? pending_->header.inner_steps() : 0; }
  std::string pending_digest() const { return pending_ ? pending_->header.frame_digest() : ""; }
  const LeaseBook& leases() const { return leases_; }
  const Life& life() const { return life_; }
  int64_t inner_steps() const { return inner_steps_; }
  // Inner steps that a committed frame, or a report of forfeiture, speaks for.
  int64_t settled_steps() const { return settled_steps_; }

  void SessionOpened() override;
  void MessageReceived(CoordinatorMessage message) override;
  void SessionClosed(absl::Status why) override;

 private:
  // A frame whose outcome is not known.
  struct PendingFrame {
    ContributionHeader header;
    EncodedFrame frame;
    bool has_right = true;  // a reset takes it: should the frame commit, no decoded term is added
    bool is_uploading = false;
    bool is_delivered = false;            // the hub holds it, as far as this session knows
    bool must_resend = false;             // it arrived damaged while the upload's answer was still on its way
    std::optional<RoundRef> admitted_to;  // as told in this session
    int64_t steps_at_stake = 0;  // with its right taken: inner steps that are forfeited if it does not count
    int64_t upload_session = 0;  // the session the upload began in
    absl::Time upload_started;
  };
  // On the way to an anchor: after joining, falling behind or deviating.
  struct CatchUp {
    Enlisted path;
    bool is_resync = false;
    std::optional<std::string> snapshot;  // its bytes, once fetched
    bool is_fetching = false;
  };
  struct EvaluationRun {
    EvaluationScope scope;
    int64_t round = 0;
    bool is_void = false;       // the anchor had moved on, or nothing is held out: answered as not done
    std::vector<float> anchor;  // a copy: the anchor may move on meanwhile
    std::vector<Batch> batches;
    size_t next = 0;
    double loss_sum = 0;
    int64_t tokens = 0;
  };

  // Session (worker_session.cc).
  void Dial();
  void SendHello();
  void OnWelcome(const Welcome& welcome);
  void OnRefused(const Refused& refused);
  void OnEnlisted(const Enlisted& path);
  void OnResync(const Resync& resync);
  void OnOutcome(const ContributionOutcome& outcome);
  void OnRoundOpened(const RoundOpened& opened);
  void OnRoundCommitted(const CommitRecord& record);
  void OnRoundAborted(const AbortRecord& record);
  void OnEvaluate(const EvaluateAnchor& request);
  void Beat();
  void RequestLease(bool again);
  void Send(const WorkerMessage& message);
  void SendForfeited(double square_sum, int64_t steps, const std::vector<LeaseSpan>& trained,
                     const std::string& reason);
  void AwaitAnswer(const std::string& to_what);

  // Frames and updates (worker_transfers.cc).
  void UploadPending();
  void UploadDone(const Digest& frame, absl::Status status);
  void FetchMissing();
  void FetchSnapshot();
  void DropPending(const std::string& why);
  void SettlePending(const CommitRecord& record);
  void ForfeitRightless(const PendingFrame& frame, const std::vector<bool>& lost, int64_t steps);
  void OfferPendingAgain();
  void RestartSession(const std::string& why);
  // The pending frame, by site and digest: all-zero frames of two sites are the same bytes.
  bool IsPending(const IncludedContribution& c) const;

  // Work (worker.cc).
  void Pump();
  bool TryEnlist();
  bool TryLoadSnapshot();
  bool TryApply();
  bool TryEvaluate();
  bool TryEncode();
  bool TryStep();
  bool TryLeave();
  // A worker that is leaving does not wait long for a coordinator that is away.
  void EndUnlessInSession();
  bool CanContribute() const;
  bool MayStep();
  void SendEnlist(const Digest& digest);
  absl::StatusOr<double> LoadSnapshot(const CatchUp& path, const OwnFrame& own, bool is_fresh);
  void SnapshotLoaded(const absl::StatusOr<double>& forfeited, CatchUp path, bool had_right);
  std::vector<bool> IncludedTensors(const Enlisted& path) const;
  int64_t ForfeitSteps();
  void ApplyDone(const CommitRecord& record, absl::StatusOr<Digest> digest);
  void EncodeDone(absl::StatusOr<EncodedFrame> frame, double decay_forfeited, const OpeningRecord& opening);
  void StepDone(const absl::StatusOr<StepResult>& result, absl::Time began);
  void ResetAfterFault(const std::string& why);
  void MaybeCaughtUp();
  double RateNow() const;
  int64_t StepsDue() const;
  void RunTask(const char* kind, std::function<void()> work, std::function<void()> done);
  std::function<void()> Guard(std::function<void()> fn);
  void End(absl::Status status);

  const Seams seams_;
  const WorkerSettings options_;
  const ReplicaMaker make_replica_;
  const std::function<void(absl::Status)> ended_;
  SiteLog log_;
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);  // with callbacks that may outlive us

  // Session.
  bool is_open_ = false, is_enlisted_ = false, is_welcome_ = false, has_ended_ = false;
  int64_t session_epoch_ = 0, enlist_epoch_ = 0;
  Backoff backoff_;
  absl::Time give_up_at_;
  TimerId redial_timer_ = 0, beat_timer_ = 0, answer_timer_ = 0;
  bool is_lease_requested_ = false;
  absl::Time lease_requested_at_;

  // The run.
  RunFile run_;
  std::string run_id_;
  Life life_;
  Welcome welcome_;
  int64_t sequences_per_step_ = 1;
  ScheduleOptions schedule_;
  std::unique_ptr<Replica> replica_;
  int64_t anchor_round_ = -1;  // −1: no anchor yet
  Digest anchor_digest_;       // as last computed from memory

  // Rounds.
  std::optional<OpeningRecord> open_;
  int64_t steps_assigned_ = 0;     // H_r
  int64_t last_contributed_ = -1;  // round
  int64_t schedule_step_ = 0;      // S of the newest anchor applied
  std::optional<PendingFrame> pending_;
  bool is_settling_ = false;  // a task applies the commit that has the pending frame
  bool is_encoding_ = false;
  std::vector<std::shared_ptr<const DecodedFrame>> returned_;
  CommitQueue commits_;
  int64_t applying_round_ = -1;  // taken out of the queue, its task not done yet
  std::optional<CatchUp> catch_up_;
  int64_t catch_up_target_ = -1;  // −1: none
  std::optional<EvaluateAnchor> evaluation_request_;
  std::optional<EvaluationRun> evaluation_;
  int bad_snapshots_ = 0;  // in a row

  // Training.
  bool is_task_running_ = false, may_train_ = false, is_leaving_said_ = false;
  bool is_bit_flipped_ = false;  // the planted defect was planted
  std::string leaving_;          // reason; empty: staying
  LeaseBook leases_;
  WorkMeter meter_;
  absl::Time next_step_at_;
  TimerId pace_timer_ = 0;
  std::string activity_ = "joining";
  int64_t inner_steps_ = 0, steps_since_encode_ = 0, steps_since_commit_ = 0, tokens_ = 0,
          tokens_since_encode_ = 0, returned_tokens_ = 0;
  double loss_sum_ = 0, steps_per_second_ = 0, upload_rate_ = 0, last_loss_ = 0;
  int64_t settled_steps_ = 0;
  std::vector<WorkerMessage> unsent_forfeits_;  // reported while there was no session
  double forfeited_square_sum_ = 0;
  double decayed_square_sum_ = 0;  // the part of it that decay took, which no Forfeited message tells
  int64_t forfeited_steps_ = 0;
  double round_trip_seconds_ = 0;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_WORKER_WORKER_H_
