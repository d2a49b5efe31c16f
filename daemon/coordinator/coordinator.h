// The coordinator role: membership, rounds, the hub's sum, the ledger, and what people ask about the run.
//
// One event loop owns all of it. The decisions are pure cores (membership, rounds, leases, catch-up); sums
// run as tasks of `work`, writes as tasks of `store`; nothing is told before it is durable (ROUNDS §7).
#ifndef ISTHMUS_DAEMON_COORDINATOR_COORDINATOR_H_
#define ISTHMUS_DAEMON_COORDINATOR_COORDINATOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/base/event_loop.h"
#include "daemon/base/logging.h"
#include "daemon/coordinator/anchor_keeper.h"
#include "daemon/coordinator/catch_up.h"
#include "daemon/coordinator/site_book.h"
#include "daemon/exchange/transport.h"
#include "daemon/membership/membership.h"
#include "daemon/rounds/admission.h"
#include "daemon/rounds/data_leases.h"
#include "daemon/rounds/grace.h"
#include "daemon/rounds/pace.h"
#include "daemon/rounds/round.h"
#include "daemon/store/ledger.h"

namespace isthmus {

struct CoordinatorSettings {
  int64_t planned_rounds = 1;                        // what the learning-rate schedule spans, in rounds
  absl::Duration restart_grace = absl::Seconds(20);  // for members to come back after a restart
  absl::Duration farewell =
      absl::Seconds(30);  // at the end: for the last evaluation's and digests' stragglers
  absl::Duration longest_evaluation = absl::Hours(1);  // at the end, by a site that is alive
  absl::Duration publish_every = absl::Milliseconds(500);
  // No event for longer than this, while the status is published all the time: the process was stopped.
  absl::Duration absence = absl::Seconds(2);
};

class Coordinator : public Hub::Listener {
 public:
  // All must outlive the coordinator, except that the runners must be gone (or idle for good) before it.
  struct Seams {
    EventLoop* loop = nullptr;
    Hub* hub = nullptr;
    TaskRunner* work = nullptr;   // sums
    TaskRunner* store = nullptr;  // the ledger
    Ledger* ledger = nullptr;
  };

  // `state` as loaded from the ledger (after Begin for a new run), `anchor` at its last commit. `finished` is
  // called once, on the loop, when the run is over: the anchor keeper then holds the final weights. `failed`
  // is called when it cannot go on (the ledger refuses to write); nothing was told that is not durable.
  Coordinator(Seams seams, CoordinatorSettings options, LedgerState state,
              std::unique_ptr<AnchorKeeper> anchor, std::function<void()> finished,
              std::function<void(absl::Status)> failed);
  ~Coordinator() override;

  // Begins to listen and picks up the run where the ledger left it. UNAVAILABLE: the address is taken.
  absl::Status Start();

  RunStatus Status(bool all_commits) const;
  // For tests between events.
  const AnchorKeeper& anchor() const { return *anchor_; }
  const std::vector<CommitRecord>& commits() const { return state_.commits; }
  const DataLeases& leases() const { return *leases_; }
  bool IsAlive(const SiteLife& life) const { return membership_.CheckLife(life).ok(); }

  void SessionOpened(SessionId session) override;
  void MessageReceived(SessionId session, WorkerMessage message) override;
  void SessionClosed(SessionId session, absl::Status why) override;
  absl::Status UploadOffered(const ContributionHeader& header) override;
  void UploadReceived(const ContributionHeader& header, SharedBytes frame) override;
  absl::StatusOr<std::shared_ptr<const BlobSource>> FetchRequested(const FetchRequest& request) override;
  RunStatus StatusRequested(const StatusRequest& request) override;

 private:
  enum class Phase { kWaiting, kOpening, kOpen, kCommitting, kFarewell, kFinished };
  struct Session {
    SiteLife life;  // empty name: has not said hello
    bool is_enlisted = false;
  };
  struct Received {
    ContributionHeader header;
    std::shared_ptr<const CheckedFrame> frame;
  };
  // One encode of one site: a worker makes at most one frame for a round.
  using FrameId = std::tuple<SiteName, int64_t, std::string>;  // site, the round made for, digest
  // What was found of a committed anchor; durable as events.
  struct HeldOut {
    double loss = 0;
    int64_t tokens = 0;
  };

  // Sessions (coordinator_sessions.cc).
  void OnHello(SessionId session, const Hello& hello);
  void OnNewcomer(SessionId session, const Hello& hello);
  void OnEnlist(SessionId session, const Enlist& enlist);
  void Welcomed(SessionId session, const SiteLife& life);
  std::pair<std::string, std::string> FindMismatch(const SiteLife& life, const Enlist& enlist) const;
  void OnCaughtUp(SessionId session, const SiteLife& life, const CaughtUp& m);
  void OnHeartbeat(SessionId session, const SiteLife& life, const Heartbeat& m);
  void OnLeaseRequest(const SiteLife& life, const LeaseRequest& m);
  void OnAnchorApplied(const SiteLife& life, const AnchorApplied& m);
  void OnForfeited(const SiteLife& life, const isthmus::Forfeited& m);
  void OnLeaving(SessionId session, const SiteLife& life, const Leaving& m);
  void Refuse(SessionId session, const std::string& field, const std::string& reason, bool may_retry);
  void HandleChanges(const MemberEffects& effects);
  void SiteIsGone(const MemberEffect& effect, EventRecord::Kind kind);
  void SendResync(const SiteLife& life, const std::string& reason);
  void SendTo(const SiteName& site, const CoordinatorMessage& message);
  // Only while that very life has the site's session.
  void SendToLife(const SiteLife& life, const CoordinatorMessage& message);
  void Broadcast(const CoordinatorMessage& message);
  Session* FindSession(SessionId session);
  bool IsEnlisted(const SiteName& site) const;

  // Rounds (coordinator_rounds.cc).
  void MaybeOpenRound();
  void OpenRound(bool is_repeat);
  void RoundIsOpen(const OpeningRecord& opening);
  void TellOpening(const SiteLife& life);
  void AssignSteps(const std::vector<SiteLife>& members);
  void Decide(const RoundDecision& decision);
  CommitRecord MakeRecord(const RoundDecision& decision) const;
  // What the round cost, and who was not in it.
  void NoteAccount(CommitRecord* record);
  void CloseRound(const RoundDecision& decision);
  void StoreCommit(std::shared_ptr<CommitRecord> record, AnchorKeeper::Result result);
  void RoundIsCommitted(const CommitRecord& record);
  void AfterCommit(const CommitRecord& record);
  void AbortRound(const std::string& reason);
  void MaybeSnapshot();
  bool IsLastRound(const std::vector<SiteLife>& members) const;
  // Whether the hub carries a residual.
  bool IsUpdateRecompressed() const;
  // Puts into a row what moved and was compared since the row before, and adds up what rows have. A row: a
  // commit, or the end of the run.
  template <typename Row>
  void CountInto(Row* row);
  template <typename Row>
  void AddRow(const Row& row);
  bool IsRunOver() const;

  // Contributions (coordinator_contributions.cc).
  static FrameId FrameIdOf(const ContributionHeader& header);
  // OK when nothing is known of this frame. ALREADY_EXISTS: it is here, or counts in a commit. ABORTED: it
  // never will count.
  absl::Status CheckNews(const ContributionHeader& header) const;
  void Settle(const ContributionHeader& header);
  // A frame that this closed round would have waited for is here.
  void LearnLateness(int64_t round);
  // Inner steps the frames of a site speak for that are in the open round or wait for one.
  int64_t StepsSpokenFor(const SiteName& site) const;
  std::string CodecOfRound(int64_t round) const;
  void FrameDecoded(const ContributionHeader& header,
                    absl::StatusOr<std::shared_ptr<const CheckedFrame>> frame);
  void Admit(const Received& received);
  void SendOutcome(const ContributionHeader& header, bool is_admitted, const std::string& reason,
                   bool is_retryable);
  void RefuseContribution(const ContributionHeader& header, const absl::Status& status);

  // Evaluations and the end (coordinator_farewell.cc).
  void RequestEvaluation(int64_t round, EvaluationScope scope);
  void AskEvaluator();
  void RequestFinalEvaluation();
  void OnEvaluationDone(const SiteLife& life, const EvaluationDone& m);
  void BeginFarewell();
  void CheckFarewell();
  bool IsInLastRound(const SiteName& site) const;
  void FinishRun();
  std::string EndText() const;

  // All (coordinator.cc).
  void RestoreBooks();
  void RestoreMisses();
  void NoteLostResidual();
  void RestoreLeases();
  void Persist(LedgerWrite write, std::function<void()> then);
  void PersistLeases(LedgerWrite write, std::function<void()> then);
  EventRecord MakeEvent(EventRecord::Kind kind, const SiteLife& life, const std::string& reason) const;
  void ArmTimers();
  // First thing at every event: notices when this process was stopped, so that it blames no site for it.
  void NoticeAbsence();
  void Publish();
  void Fail(absl::Status status);
  std::function<void()> Guard(std::function<void()> fn);
  absl::Time Now() const { return seams_.loop->clock().SteadyNow(); }
  Servable servable() const { return {state_.commits, state_.snapshots}; }
  int64_t CommittedTokens() const;
  // Status (coordinator_status.cc).
  CommitSummary Summarize(size_t index) const;
  void AddSites(RunStatus* status) const;
  void AddTraffic(RunStatus* status) const;
  std::string WaitingFor() const;

  const Seams seams_;
  const CoordinatorSettings options_;
  LedgerState state_;  // as durable, kept up to date
  std::unique_ptr<AnchorKeeper> anchor_;
  const std::function<void()> finished_;
  const std::function<void(absl::Status)> failed_;
  SiteLog log_{"coordinator"};
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);  // with callbacks that may outlive us
  bool is_failed_ = false;
  absl::Time started_wall_;
  absl::Time awake_at_ = absl::InfiniteFuture();  // the last event

  Phase phase_ = Phase::kWaiting;
  std::map<SessionId, Session> sessions_;
  std::map<SiteName, SessionId> session_of_;
  Membership membership_;
  std::unique_ptr<DataLeases> leases_;
  SiteBook book_;

  int64_t last_round_ = 0;     // the highest round id used
  int64_t schedule_step_ = 0;  // S of the newest anchor
  std::optional<OpeningRecord> opening_;
  std::unique_ptr<RoundCore> round_;
  absl::Time opened_at_;
  std::map<SiteLife, Received> arrived_;
  std::vector<Received> held_;  // whole frames that came between rounds
  std::set<FrameId> decoding_;
  // Refused, or in a round that aborted: their senders dropped them, so a copy must never count.
  std::set<FrameId> settled_;
  std::map<int64_t, std::string> codecs_;  // of the newest openings, by round
  CommittedWindow window_;
  GraceLearner grace_;
  std::map<int64_t, absl::Time> quorum_at_;  // of the last closed rounds, for frames that come late
  std::map<SiteName, int64_t> missed_;       // the newest round that closed without it, until it is heard of
  std::map<std::string, PaceLearner> pace_;
  std::map<int64_t, HeldOut> held_out_;  // of subsets, by round
  std::map<std::string, int> damaged_;   // frames that did not decode, by digest: asked for again once
  TransferCount moved_in_rows_;          // of all commits, as the ledger has it
  TransferCount moved_at_commit_;        // the hub's own count when the last row was made
  int64_t bytes_since_snapshot_ = 0;
  bool is_snapshot_running_ = false;
  bool is_last_repeated_ = false;  // the last round aborted once: the next one is its repetition
  SiteName last_arrived_;

  std::map<SiteName, int64_t> applied_;                   // newest round whose digest was compared
  int64_t digests_compared_ = 0, digests_deviating_ = 0;  // since the last row was made
  int64_t compared_in_rows_ = 0, deviating_in_rows_ = 0, refused_ = 0;
  SiteName evaluator_;
  int64_t evaluating_round_ = -1;
  EvaluationScope evaluating_scope_ = SUBSET;
  absl::Time evaluation_began_, evaluation_asked_;
  double held_out_start_ = 0, held_out_end_ = 0;
  std::vector<EventRecord> pending_events_;
  absl::Time farewell_until_;
  TimerId timer_ = 0, publish_timer_ = 0;
};

template <typename Row>
void Coordinator::CountInto(Row* row) {
  TransferCount moved = seams_.hub->transferred();
  moved -= std::exchange(moved_at_commit_, moved);
  moved.classes.AppendTo(/*only_moved=*/true, row->mutable_traffic());
  row->set_bytes_in(moved.bytes_in);
  row->set_bytes_out(moved.bytes_out);
  row->set_digests_compared(std::exchange(digests_compared_, 0));
  row->set_digests_deviating(std::exchange(digests_deviating_, 0));
  AddRow(*row);
}

template <typename Row>
void Coordinator::AddRow(const Row& row) {
  for (const TrafficBytes& moved : row.traffic()) moved_in_rows_.classes.Add(moved);
  moved_in_rows_.bytes_in += row.bytes_in();
  moved_in_rows_.bytes_out += row.bytes_out();
  compared_in_rows_ += row.digests_compared();
  deviating_in_rows_ += row.digests_deviating();
}

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_COORDINATOR_COORDINATOR_H_
