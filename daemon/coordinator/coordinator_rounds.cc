// Coordinator: opening, closing and committing rounds.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/codec_spec.h"
#include "daemon/coordinator/coordinator.h"
#include "daemon/coordinator/counted_frames.h"
#include "daemon/coordinator/lease_rows.h"
#include "daemon/coordinator/message_fields.h"
#include "daemon/coordinator/proto_time.h"
#include "daemon/store/commit_record.h"

namespace isthmus {
namespace {

constexpr char kExactUpdates[] = "exact";
// Eight bits flush what is carried: what they leave is below a hundredth of a value, and forfeited.
constexpr char kLastRoundSpec[] = "dense(bits=8,group=64)|zstd(1)";

// Of a dense last round. A run that is dense throughout ends as it went.
std::string LastRoundSpec(const std::string& run_spec) {
  const absl::StatusOr<CodecSpec> spec = ParseSpecText(run_spec);
  return spec.ok() && spec->kind == CodecSpec::Kind::kDense ? run_spec : kLastRoundSpec;
}

RoundOptions RoundOptionsOf(const RunFile& run) {
  RoundOptions o;
  if (run.rounds().has_longest_round()) o.longest_round = FromProto(run.rounds().longest_round());
  o.quorum = static_cast<int>(run.rounds().quorum());
  o.minimum = static_cast<int>(run.rounds().minimum());
  return o;
}

CloseKind KindOf(const RoundCore& round, absl::Time now, absl::Duration longest) {
  if (round.Missing().empty()) return ALL_ARRIVED;
  return now - round.opened_at() >= longest ? DEADLINE : QUORUM_AND_GRACE;
}

// Values as the ledger stores them.
absl::string_view BytesOf(const std::vector<float>& values) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file's values are little-endian");
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// What a site's weight is measured by (ROUNDS §8).
int64_t WeightMeasure(ExchangeConfig::Weights weights, const ContributionHeader& h) {
  switch (weights) {
    case ExchangeConfig::TOKENS:
      return std::max<int64_t>(1, h.tokens());
    case ExchangeConfig::EQUAL:
      return 1;
    default:
      return std::max<int64_t>(1, h.tokens_per_step());
  }
}

}  // namespace

bool Coordinator::IsRunOver() const {
  const RoundConfig& r = state_.run.run_file.rounds();
  if (!state_.commits.empty() && state_.commits.back().is_last()) return true;
  if (r.total_rounds() > 0 && static_cast<int64_t>(state_.commits.size()) >= r.total_rounds()) return true;
  return r.total_tokens() > 0 && CommittedTokens() >= r.total_tokens();
}

bool Coordinator::IsLastRound(const std::vector<SiteLife>& members) const {
  const RoundConfig& r = state_.run.run_file.rounds();
  if (r.total_rounds() > 0 && static_cast<int64_t>(state_.commits.size()) + 1 >= r.total_rounds())
    return true;
  if (r.total_tokens() <= 0) return false;
  int64_t coming = 0;
  for (const SiteLife& m : members) {
    const SiteEntry* e = book_.find(m.name);
    if (e != nullptr) coming += e->tokens_per_step * std::max<int64_t>(1, e->steps_assigned);
  }
  return CommittedTokens() + coming >= r.total_tokens();
}

bool Coordinator::IsUpdateRecompressed() const {
  const std::string& codec = state_.run.run_file.exchange().update_codec();
  return !codec.empty() && codec != kExactUpdates;
}

void Coordinator::MaybeOpenRound() {
  if (phase_ != Phase::kWaiting || is_failed_) return;
  if (IsRunOver()) return BeginFarewell();
  const int64_t wanted =
      state_.commits.empty() ? std::max<int64_t>(1, state_.run.run_file.rounds().start_sites()) : 1;
  int64_t ready = 0;
  for (const MemberStatus& m : membership_.Snapshot(Now())) {
    ready += (m.state == SiteState::kReady || m.state == SiteState::kActive) && m.is_connected;
  }
  if (ready < wanted) return;
  HandleChanges(membership_.FreezeView(Now()));
  std::vector<SiteLife> members;
  for (const SiteLife& m : membership_.view().members) {
    if (membership_.CheckLife(m).ok()) members.push_back(m);
  }
  if (!ReasonNotToOpen(RoundOptionsOf(state_.run.run_file), static_cast<int>(members.size())).empty()) return;
  AssignSteps(members);
  OpenRound(/*is_repeat=*/std::exchange(is_last_repeated_, false));
}

void Coordinator::AssignSteps(const std::vector<SiteLife>& members) {
  std::vector<SitePace> paces;
  for (const SiteLife& m : members) {
    const SiteEntry& e = book_.at(m.name);
    SitePace p;
    p.life = m;
    p.steps_per_second = e.progress.steps_per_second();
    p.upload = pace_[m.name].upload();
    if (m.name == evaluator_ && state_.run.run_file.evaluation().every_rounds() == 1)
      p.other_work = e.evaluation_time;
    paces.push_back(p);
  }
  const int64_t nominal = std::max<int64_t>(1, state_.run.run_file.rounds().inner_steps_per_round());
  const absl::Duration longest = RoundOptionsOf(state_.run.run_file).longest_round;
  for (const SiteSteps& s : PlanSteps(paces, nominal, longest))
    book_.at(s.life.name).steps_assigned = s.steps;
}

void Coordinator::OpenRound(bool is_repeat) {
  phase_ = Phase::kOpening;
  OpeningRecord opening;
  opening.mutable_key()->set_round(last_round_ + 1);
  opening.set_view_id(membership_.view().id);
  std::vector<SiteLife> members;
  for (const SiteLife& m : membership_.view().members) {
    if (!membership_.CheckLife(m).ok()) continue;
    members.push_back(m);
    opening.add_members()->set_site(m.name);
    opening.mutable_members(opening.members_size() - 1)->set_incarnation(m.incarnation);
  }
  opening.set_base_digest(anchor_->AnchorDigest().ToBytes());
  opening.set_schedule_step(schedule_step_);
  opening.set_is_last(is_repeat || IsLastRound(members));
  const bool is_dense = opening.is_last() && state_.run.run_file.rounds().dense_last_round();
  opening.set_codec(is_dense ? LastRoundSpec(state_.run.codec) : state_.run.codec);
  opening.set_attempt(is_repeat ? 2 : 1);
  last_round_ = opening.key().round();
  LedgerWrite write;
  write.openings.push_back(opening);
  Persist(std::move(write), [this, opening] {
    state_.open.push_back(opening);
    RoundIsOpen(opening);
  });
}

void Coordinator::RoundIsOpen(const OpeningRecord& opening) {
  phase_ = Phase::kOpen;
  opening_ = opening;
  opened_at_ = Now();
  codecs_[opening.key().round()] = opening.codec();
  if (codecs_.size() > 16) codecs_.erase(codecs_.begin());
  log_.set_round(opening.key().round());
  RoundOpening core;
  core.key = {opening.key().round(), opening.key().fragment()};
  for (const Life& l : opening.members()) core.view.push_back(LifeOf(l));
  core.grace = grace_.Grace();
  core.is_last = opening.is_last();
  arrived_.clear();
  round_ = std::make_unique<RoundCore>(RoundOptionsOf(state_.run.run_file), core, Now());
  log_.Info("round ", opening.key().round(), " is open with ", core.view.size(), " sites",
            opening.is_last() ? " (the last round)" : "");
  for (const SiteLife& m : core.view) TellOpening(m);
  if (state_.commits.empty() && held_out_start_ == 0) RequestEvaluation(0, WHOLE);
  std::vector<Received> held;
  held.swap(held_);
  for (const Received& r : held) Admit(r);
  // A member may have died while the opening was being written.
  for (const SiteLife& m : core.view) {
    if (round_ != nullptr && phase_ == Phase::kOpen && !membership_.CheckLife(m).ok()) {
      Decide(round_->SiteGone(m, "died", Now()));
    }
  }
  ArmTimers();
}

void Coordinator::TellOpening(const SiteLife& life) {
  CoordinatorMessage out;
  RoundOpened* o = out.mutable_round_opened();
  *o->mutable_opening() = *opening_;
  const SiteEntry& e = book_.at(life.name);
  o->set_inner_steps(e.steps_assigned > 0 ? e.steps_assigned
                                          : state_.run.run_file.rounds().inner_steps_per_round());
  if (IsEnlisted(life.name)) SendTo(life.name, out);
}

void Coordinator::Decide(const RoundDecision& decision) {
  if (decision.verdict == RoundVerdict::kClose) CloseRound(decision);
  if (decision.verdict == RoundVerdict::kAbort) AbortRound(decision.reason);
}

CommitRecord Coordinator::MakeRecord(const RoundDecision& decision) const {
  const RunFile& run = state_.run.run_file;
  CommitRecord record;
  *record.mutable_key() = opening_->key();
  record.set_view_id(opening_->view_id());
  record.set_base_digest(opening_->base_digest());
  record.set_base_round(anchor_->stamp().round);
  record.set_attempt(opening_->attempt());
  record.set_codec(opening_->codec());
  record.set_is_last(opening_->is_last());
  std::vector<int64_t> measures;
  for (const SiteLife& life : decision.included) {
    measures.push_back(WeightMeasure(run.exchange().weights(), arrived_.at(life).header));
  }
  const std::vector<int32_t> weights = ContributionWeights(measures);
  int64_t total = 0;
  for (size_t i = 0; i < decision.included.size(); ++i) {
    const ContributionHeader& h = arrived_.at(decision.included[i]).header;
    IncludedContribution* c = record.add_included();
    *c->mutable_life() = h.life();
    c->set_frame_digest(h.frame_digest());
    c->set_weight(weights[i]);
    c->set_tokens(h.tokens());
    c->set_steps(h.steps());
    c->set_base_round(h.base_round());
    c->set_frame_bytes(h.frame_bytes());
    c->set_loss(h.loss());
    c->set_inner_steps(h.inner_steps());
    c->set_decayed_square_sum(h.decayed_square_sum());
    *c->mutable_trained() = h.trained();
    total += weights[i];
  }
  record.set_total_weight(total);
  record.set_is_nesterov(run.outer().form() == OuterConfig::NESTEROV);
  // A dense last round flushes what is carried: more than all of it would overshoot.
  const bool is_flush = opening_->is_last() && run.rounds().dense_last_round() && !record.is_nesterov();
  record.set_outer_rate_bits(BitsOfFloat(is_flush ? 1.0f : static_cast<float>(run.outer().rate())));
  record.set_outer_momentum_bits(
      record.is_nesterov() ? BitsOfFloat(static_cast<float>(run.outer().momentum())) : 0);
  record.set_schedule_step(schedule_step_ + run.rounds().inner_steps_per_round());
  record.set_close_kind(KindOf(*round_, Now(), RoundOptionsOf(run).longest_round));
  record.set_reason(decision.reason);
  record.set_expected(static_cast<int64_t>(round_->view().size()));
  record.set_round_seconds(absl::ToDoubleSeconds(Now() - opened_at_));
  if (IsUpdateRecompressed()) {
    const bool is_dense = opening_->is_last() && run.rounds().dense_last_round();
    record.set_update_codec(is_dense ? kFlushUpdate : run.exchange().update_codec());
  }
  return record;
}

void Coordinator::NoteAccount(CommitRecord* record) {
  CountInto(record);
  double computed = 0, waited = 0;
  book_.TakeRoundSeconds(&computed, &waited);
  record->set_compute_seconds(computed);
  record->set_wait_seconds(waited);
  record->set_close_delay_seconds(absl::ToDoubleSeconds(Now() - round_->last_arrival_at()));
  for (const SiteLife& m : round_->Missing()) {
    book_.Missed(m.name, MissReason(*record));
    missed_[m.name] = record->key().round();
    *record->add_missing() = MessageOf(m);
  }
  record->set_slowest_site(record->missing().empty() ? last_arrived_ : record->missing(0).site());
}

void Coordinator::CloseRound(const RoundDecision& decision) {
  phase_ = Phase::kCommitting;
  log_.Info(decision.reason);
  auto record = std::make_shared<CommitRecord>(MakeRecord(decision));
  NoteAccount(record.get());
  const absl::Time quorum_at = std::min(round_->quorum_at(), Now());
  quorum_at_[record->key().round()] = quorum_at;
  while (quorum_at_.size() > kOldestBaseRounds + 1) quorum_at_.erase(quorum_at_.begin());
  grace_.RoundClosed(record->key().round(),
                     round_->last_arrival_at() - std::min(quorum_at, round_->last_arrival_at()),
                     Now() - opened_at_);
  std::vector<std::shared_ptr<const CheckedFrame>> frames;
  for (const SiteLife& life : decision.included) frames.push_back(arrived_.at(life).frame);
  const Averaging averaging = state_.run.run_file.exchange().averaging() == ExchangeConfig::CONTRIBUTORS
                                  ? Averaging::kContributors
                                  : Averaging::kPeers;
  auto result = std::make_shared<absl::StatusOr<AnchorKeeper::Result>>(absl::InternalError("not summed"));
  seams_.work->Run(
      "sum",
      [this, record, result, frames, averaging] {
        *result = anchor_->CommitRound(*record, frames, averaging);
      },
      Guard([this, record, result] {
        if (!result->ok()) return Fail(result->status());
        StoreCommit(record, *std::move(*result));
      }));
}

void Coordinator::StoreCommit(std::shared_ptr<CommitRecord> record, AnchorKeeper::Result result) {
  record->set_update_digest(DigestOf(absl::string_view(result.update)).ToBytes());
  record->set_update_bytes(result.update.size());
  record->set_state_digest(result.state_digest.ToBytes());
  for (const auto& [tensor, index] : result.left_out) {
    record->add_left_out()->set_tensor(tensor);
    record->mutable_left_out(record->left_out_size() - 1)->set_included_index(index);
  }
  if (result.residual != nullptr) {
    record->set_residual_digest(DigestOf(absl::Span<const float>(*result.residual)).ToBytes());
    record->set_residual_square_sum(result.residual_square_sum);
  }
  *record->mutable_committed_at() = ToProto(seams_.loop->clock().Now());
  struct Job {
    std::string update;
    std::shared_ptr<const std::vector<float>> residual;  // shared with the keeper
    std::vector<LeaseRow> rows;
    LedgerWrite also;
    absl::Status status;
  };
  auto job = std::make_shared<Job>();
  job->update = std::move(result.update);
  job->residual = std::move(result.residual);
  if (job->residual != nullptr) job->also.residual = BytesOf(*job->residual);
  for (const ImplausibleTensor& t : result.implausible) {
    const SiteLife life = LifeOf(record->included(t.frame).life());
    const std::string reason =
        absl::StrCat("tensor ", anchor_->table().tensors()[t.tensor].name, " of site ", life.name,
                     " refused in round ", record->key().round(), ": ", t.reason);
    log_.Warning(reason);
    ++refused_;
    book_.at(life.name).last_miss_reason = reason;
    job->also.events.push_back(MakeEvent(EventRecord::CONTRIBUTION_REFUSED, life, reason));
  }
  for (const IncludedContribution& c : record->included())
    leases_->Committed(c.life().site(), *DigestFromBytes(c.frame_digest()));
  job->rows = ToRows(leases_->Export());
  job->also.lease_rows = &job->rows;
  seams_.store->Run(
      "commit", [this, job, record] { job->status = seams_.ledger->Commit(*record, job->update, job->also); },
      Guard([this, job, record] {
        if (!job->status.ok()) return Fail(job->status);
        for (const EventRecord& e : job->also.events) state_.events.push_back(e);
        RoundIsCommitted(*record);
      }));
}

void Coordinator::RoundIsCommitted(const CommitRecord& record) {
  state_.commits.push_back(record);
  state_.open.clear();
  schedule_step_ = record.schedule_step();
  bytes_since_snapshot_ += record.update_bytes();
  for (const IncludedContribution& c : record.included()) {
    const Received& r = arrived_.at(LifeOf(c.life()));
    book_.Included(LifeOf(c.life()), c.steps(), r.header.inner_steps());
    book_.Decayed(c.life().site(), c.decayed_square_sum());
  }
  window_.Committed(record.key().round(), *DigestFromBytes(record.state_digest()), CountedFramesOf(record));
  CoordinatorMessage out;
  *out.mutable_round_committed()->mutable_record() = record;
  Broadcast(out);
  log_.Info("round ", record.key().round(), " is committed with ", record.included_size(), " of ",
            record.expected(), ", digest ", DigestFromBytes(record.state_digest())->ToHex());
  round_.reset();
  opening_.reset();
  arrived_.clear();
  phase_ = Phase::kWaiting;
  AfterCommit(record);
}

void Coordinator::AfterCommit(const CommitRecord& record) {
  MaybeSnapshot();
  const int64_t every = state_.run.run_file.evaluation().every_rounds();
  if (IsRunOver()) return BeginFarewell();
  if (every > 0 && static_cast<int64_t>(state_.commits.size()) % every == 0) {
    RequestEvaluation(record.key().round(), SUBSET);
  }
  MaybeOpenRound();
}

void Coordinator::AbortRound(const std::string& reason) {
  phase_ = Phase::kOpening;  // nothing is admitted while the abort is being written
  const bool was_last = opening_->is_last();
  const int64_t attempt = opening_->attempt();
  AbortRecord record;
  *record.mutable_key() = opening_->key();
  record.set_reason(reason);
  record.set_attempt(attempt);
  for (const auto& [life, r] : arrived_)
    leases_->Dropped(life.name, *DigestFromBytes(r.header.frame_digest()));
  for (const SiteLife& m : round_->Missing()) {
    book_.Missed(m.name, MissReason(record));
    *record.add_missing() = MessageOf(m);
  }
  LedgerWrite write;
  write.aborts.push_back(record);
  for (const auto& [life, r] : arrived_) {
    // Its process is gone, and now its last frame is, too.
    if (life.incarnation >= book_.at(life.name).first_incarnation) continue;
    book_.FrameLost(life.name, r.header.steps());
    write.events.push_back(MakeEvent(EventRecord::FORFEITED, life, record.reason()));
    write.events.back().set_steps(r.header.steps());
  }
  PersistLeases(std::move(write), [this, record, was_last, attempt] {
    state_.aborts.push_back(record);
    state_.open.clear();
    for (const auto& [life, r] : arrived_) Settle(r.header);
    CoordinatorMessage out;
    *out.mutable_round_aborted()->mutable_record() = record;
    Broadcast(out);
    log_.Warning("round ", record.key().round(), " aborts: ", record.reason());
    round_.reset();
    opening_.reset();
    arrived_.clear();
    phase_ = Phase::kWaiting;
    if (was_last && attempt >= 2) return BeginFarewell();
    is_last_repeated_ = was_last;
    MaybeOpenRound();
  });
}

void Coordinator::MaybeSnapshot() {
  if (is_snapshot_running_ || state_.snapshots.empty()) return;
  if (bytes_since_snapshot_ * 2 < state_.snapshots.back().bytes() && !IsRunOver()) return;
  if (state_.snapshots.back().round() == anchor_->stamp().round) return;
  is_snapshot_running_ = true;
  bytes_since_snapshot_ = 0;
  struct Job {
    SnapshotInfo info;
    SnapshotValues values;
    absl::Status status;
    absl::StatusOr<LedgerState> after = absl::UnknownError("");
  };
  auto job = std::make_shared<Job>();
  job->info = anchor_->Info();
  job->info.set_codec(state_.run.run_file.exchange().snapshot_codec());
  job->values = anchor_->Values();
  // Never one alone: its pruning would take the updates away that workers are just fetching.
  const int keep = static_cast<int>(std::max<int64_t>(2, state_.run.run_file.storage().snapshots_kept()));
  seams_.store->Run(
      "snapshot",
      [this, job, keep] {
        job->status = seams_.ledger->AddSnapshot(job->info, job->values, keep);
        if (job->status.ok()) job->after = seams_.ledger->Load();
      },
      Guard([this, job] {
        is_snapshot_running_ = false;
        if (!job->status.ok()) return Fail(job->status);
        if (!job->after.ok()) return Fail(job->after.status());
        state_.snapshots = job->after->snapshots;
        log_.Info("snapshot of round ", job->info.round(), " is written");
        CheckFarewell();  // which waits for it
      }));
}

}  // namespace isthmus
