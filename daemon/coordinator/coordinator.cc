// Coordinator: construction, durability, timers.
#include "daemon/coordinator/coordinator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/reason.h"
#include "daemon/coordinator/counted_frames.h"
#include "daemon/coordinator/lease_rows.h"
#include "daemon/coordinator/message_fields.h"
#include "daemon/coordinator/proto_time.h"

namespace isthmus {
namespace {

MembershipOptions MembershipOptionsOf(const RunFile& run) {
  MembershipOptions o;
  if (run.membership().has_heartbeat()) o.heartbeat_interval = FromProto(run.membership().heartbeat());
  if (run.membership().has_suspect_after()) o.suspicion_floor = FromProto(run.membership().suspect_after());
  return o;
}

}  // namespace

Coordinator::Coordinator(Seams seams, CoordinatorSettings options, LedgerState state,
                         std::unique_ptr<AnchorKeeper> anchor, std::function<void()> finished,
                         std::function<void(absl::Status)> failed)
    : seams_(seams),
      options_(options),
      state_(std::move(state)),
      anchor_(std::move(anchor)),
      finished_(std::move(finished)),
      failed_(std::move(failed)),
      membership_(MembershipOptionsOf(state_.run.run_file)) {}

Coordinator::~Coordinator() { *is_alive_ = false; }

std::function<void()> Coordinator::Guard(std::function<void()> fn) {
  return [this, alive = is_alive_, fn = std::move(fn)] {
    if (*alive && !is_failed_) fn();
  };
}

absl::Status Coordinator::Start() {
  started_wall_ = seams_.loop->clock().Now();
  const RunFile& run = state_.run.run_file;
  const DataMode mode = run.data().mode() == DataConfig::PER_SITE ? DataMode::kPerSite : DataMode::kShared;
  if (state_.lease_rows.empty()) {
    leases_ = std::make_unique<DataLeases>(mode, std::max<int64_t>(1, state_.run.data_sequences));
  } else {
    absl::StatusOr<DataLeases> leases = DataLeases::Import(mode, FromRows(state_.lease_rows));
    if (!leases.ok()) return leases.status();
    leases_ = std::make_unique<DataLeases>(*std::move(leases));
  }
  // The state the run began from: what its first commit was based on, or snapshot 0 while there is none.
  const std::string& first =
      state_.commits.empty() ? state_.snapshots.front().state_digest() : state_.commits.front().base_digest();
  window_.Start(0, DigestFromBytes(first).value_or(Digest()));
  RestoreBooks();
  RestoreMisses();
  for (const CommitRecord& c : state_.commits) {
    window_.Committed(c.key().round(), *DigestFromBytes(c.state_digest()), CountedFramesOf(c));
    last_round_ = std::max(last_round_, c.key().round());
    schedule_step_ = c.schedule_step();
    AddRow(c);
    if (state_.snapshots.empty() || c.key().round() > state_.snapshots.back().round())
      bytes_since_snapshot_ += c.update_bytes();
  }
  for (const AbortRecord& a : state_.aborts) last_round_ = std::max(last_round_, a.key().round());
  bool is_over = false;
  for (const EventRecord& e : state_.events) {
    is_over |= e.kind() == EventRecord::FINISHED;
    AddRow(e);
    if (e.kind() == EventRecord::CONTRIBUTION_REFUSED) ++refused_;
    if (e.kind() == EventRecord::EVALUATED) {
      if (e.reason() == "whole, at the start") held_out_start_ = e.loss();
      if (e.reason() == "whole, at the end") held_out_end_ = e.loss();
      if (e.reason() == "subset") held_out_[e.round()] = {e.loss(), e.tokens()};
    }
  }
  if (absl::Status s = seams_.hub->Start(this); !s.ok()) return s;
  RestoreLeases();
  NoteLostResidual();
  if (is_over) {
    phase_ = Phase::kFinished;
    seams_.loop->Post(Guard([this] { finished_(); }));
  } else if (!state_.open.empty()) {
    const OpeningRecord opening = state_.open.back();
    last_round_ = std::max(last_round_, opening.key().round());
    View view;
    view.id = opening.view_id();
    // Who died or left since the opening stays gone: its leases are others' by now.
    std::set<SiteLife> gone;
    for (const EventRecord& e : state_.events) {
      if (e.kind() == EventRecord::DIED || e.kind() == EventRecord::LEFT)
        gone.insert({e.life().site(), e.life().incarnation()});
    }
    for (const Life& l : opening.members()) {
      const SiteLife life{l.site(), l.incarnation()};
      if (gone.count(life) == 0) view.members.push_back(life);
    }
    membership_.Restore(view, options_.restart_grace, Now());
    log_.Info("run ", state_.run.run_id, " goes on with round ", opening.key().round(), " still open");
    RoundIsOpen(opening);
  } else if (IsRunOver()) {
    BeginFarewell();
  }
  ArmTimers();
  publish_timer_ = seams_.loop->RunAfter(options_.publish_every, Guard([this] { Publish(); }));
  return absl::OkStatus();
}

// What sites contributed and forfeited, as far as it is written down.
void Coordinator::RestoreBooks() {
  for (const EventRecord& e : state_.events) {
    if (e.kind() == EventRecord::HUB_FORFEITED) continue;  // no site's
    SiteEntry& entry = book_.at(e.life().site());
    if (e.kind() == EventRecord::JOINED) entry.state_before = "away";
    if (e.kind() == EventRecord::LEFT) entry.state_before = "left";
    if (e.kind() == EventRecord::DIED) entry.state_before = "dead";
    if (e.kind() == EventRecord::JOINED && e.is_new_process()) {
      entry.first_incarnation = e.life().incarnation();
      entry.steps_at_last_commit = 0;
    }
    if (e.kind() != EventRecord::FORFEITED) continue;
    entry.forfeited_steps += e.steps();
    entry.forfeited_square_sum += e.square_sum();
    entry.steps_at_last_commit = std::max(entry.steps_at_last_commit, e.inner_steps());
  }
  for (const CommitRecord& c : state_.commits) {
    for (const IncludedContribution& i : c.included()) {
      book_.Included({i.life().site(), i.life().incarnation()}, i.steps(), i.inner_steps());
      book_.Decayed(i.life().site(), i.decayed_square_sum());
    }
  }
  book_.CountSecondsFromNow();
}

void Coordinator::RestoreMisses() {
  std::map<SiteName, int64_t> newest;  // the round of the reason that stands
  const auto add = [&](const SiteName& site, int64_t round, const std::string& reason) {
    SiteEntry& entry = book_.at(site);
    if (const auto it = newest.find(site); it != newest.end() && it->second > round) return;
    newest[site] = round;
    entry.last_miss_reason = reason;
  };
  for (const CommitRecord& c : state_.commits) {
    for (const Life& m : c.missing()) {
      ++book_.at(m.site()).rounds_missed;
      add(m.site(), c.key().round(), MissReason(c));
    }
  }
  for (const AbortRecord& a : state_.aborts) {
    for (const Life& m : a.missing()) {
      ++book_.at(m.site()).rounds_missed;
      add(m.site(), a.key().round(), MissReason(a));
    }
  }
  for (const EventRecord& e : state_.events) {
    if (e.kind() == EventRecord::CONTRIBUTION_REFUSED) add(e.life().site(), e.round(), e.reason());
  }
}

// What the hub carried is lost; written down, so that it is counted once.
void Coordinator::NoteLostResidual() {
  if (!anchor_->lost_residual().has_value()) return;
  const AnchorKeeper::LostResidual& lost = *anchor_->lost_residual();
  EventRecord e =
      MakeEvent(EventRecord::HUB_FORFEITED, SiteLife(),
                absl::StrCat("what the hub carried after round ", lost.round, " cannot be read: ", lost.why));
  e.set_round(lost.round);
  e.set_square_sum(lost.square_sum);
  log_.Error(e.reason(), "; forfeited, sum of squares ", lost.square_sum);
  LedgerWrite write;
  write.events.push_back(std::move(e));
  Persist(std::move(write), nullptr);
}

// Lives that the restarted membership does not know must join anew: their leases are over.
void Coordinator::RestoreLeases() {
  std::set<std::pair<std::string, int64_t>> members;
  for (const OpeningRecord& o : state_.open) {
    for (const Life& l : o.members()) members.emplace(l.site(), l.incarnation());
  }
  for (const auto& [site, incarnation] : state_.incarnations) {
    for (int64_t old = incarnation; old > 0; --old) {
      if (members.count({site, old}) > 0) continue;
      leases_->SiteGone({site, old});
      break;
    }
  }
}

void Coordinator::Persist(LedgerWrite write, std::function<void()> then) {
  for (EventRecord& e : pending_events_) write.events.push_back(std::move(e));
  pending_events_.clear();
  struct Job {
    LedgerWrite write;
    absl::Status status;
  };
  auto job = std::make_shared<Job>();
  job->write = std::move(write);
  seams_.store->Run(
      "write", [this, job] { job->status = seams_.ledger->Write(job->write); },
      Guard([this, job, then = std::move(then)] {
        if (!job->status.ok()) return Fail(job->status);
        for (const EventRecord& e : job->write.events) state_.events.push_back(e);
        if (then) then();
      }));
}

void Coordinator::PersistLeases(LedgerWrite write, std::function<void()> then) {
  auto rows = std::make_shared<std::vector<LeaseRow>>(ToRows(leases_->Export()));
  write.lease_rows = rows.get();
  // The rows live as long as the continuation, which outlives the write.
  Persist(std::move(write), [rows, then = std::move(then)] {
    if (then) then();
  });
}

EventRecord Coordinator::MakeEvent(EventRecord::Kind kind, const SiteLife& life,
                                   const std::string& reason) const {
  EventRecord e;
  e.set_kind(kind);
  e.mutable_life()->set_site(life.name);
  e.mutable_life()->set_incarnation(life.incarnation);
  e.set_round(opening_ ? opening_->key().round() : last_round_);
  e.set_reason(reason);
  *e.mutable_at() = ToProto(seams_.loop->clock().Now());
  return e;
}

void Coordinator::Fail(absl::Status status) {
  if (is_failed_) return;
  log_.Error("cannot go on: ", status.message());
  is_failed_ = true;
  failed_(std::move(status));
}

void Coordinator::ArmTimers() {
  seams_.loop->Cancel(timer_);
  absl::Time next = membership_.NextDeadline();
  if (round_ != nullptr && phase_ == Phase::kOpen) next = std::min(next, round_->NextDeadline());
  if (phase_ == Phase::kFarewell && farewell_until_ > Now()) next = std::min(next, farewell_until_);
  if (phase_ == Phase::kFarewell && evaluating_round_ >= 0) {
    for (const absl::Time t :
         {evaluation_asked_ + options_.farewell, evaluation_began_ + options_.longest_evaluation}) {
      if (t > Now()) next = std::min(next, t);
    }
  }
  timer_ = 0;
  if (next == absl::InfiniteFuture()) return;
  timer_ = seams_.loop->RunAt(next, Guard([this] {
                                timer_ = 0;
                                NoticeAbsence();
                                HandleChanges(membership_.Tick(Now()));
                                if (round_ != nullptr && phase_ == Phase::kOpen) Decide(round_->Tick(Now()));
                                if (phase_ == Phase::kFarewell) CheckFarewell();
                                MaybeOpenRound();
                                ArmTimers();
                              }));
}

void Coordinator::NoticeAbsence() {
  const absl::Time now = Now();
  const absl::Duration absence = now - awake_at_;
  awake_at_ = now;
  if (absence <= options_.absence) return;
  log_.Warning("was stopped for ", SecondsText(absence), "; no site's silence is counted for that time");
  membership_.NobodyListened(absence, now);
}

void Coordinator::Publish() {
  NoticeAbsence();
  seams_.hub->PublishStatus(Status(/*all_commits=*/false));
  publish_timer_ = seams_.loop->RunAfter(options_.publish_every, Guard([this] { Publish(); }));
}

int64_t Coordinator::CommittedTokens() const {
  int64_t tokens = 0;
  for (const CommitRecord& c : state_.commits) {
    for (const IncludedContribution& i : c.included()) tokens += i.tokens();
  }
  return tokens;
}

RunStatus Coordinator::StatusRequested(const StatusRequest& request) { return Status(request.all_commits()); }

absl::StatusOr<std::shared_ptr<const BlobSource>> Coordinator::FetchRequested(const FetchRequest& request) {
  if (request.run_id() != state_.run.run_id) {
    return absl::FailedPreconditionError(
        absl::StrCat("this is run ", state_.run.run_id, ", not ", request.run_id()));
  }
  if (request.kind() != UPDATE && request.kind() != SNAPSHOT && request.kind() != PACKED_SNAPSHOT) {
    return absl::NotFoundError(absl::StrCat("no blob of kind ", request.kind(), " is served"));
  }
  BlobName name;
  name.kind = request.kind();
  name.round = request.round();
  name.fragment = request.fragment();
  return seams_.ledger->OpenBlob(name);
}

}  // namespace isthmus
