// Coordinator: opening, filling, closing and committing rounds; the end of the run.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/coordinator/coordinator.h"
#include "daemon/coordinator/counted_frames.h"
#include "daemon/coordinator/lease_rows.h"
#include "daemon/coordinator/proto_time.h"
#include "daemon/store/commit_record.h"

namespace isthmus {
namespace {

constexpr char kDenseSpec[] = "dense(bits=24)|zstd(1)";

constexpr int64_t kRememberedRounds = 64;

SiteLife LifeOf(const Life& l) { return {l.site(), l.incarnation()}; }

// Zero when it is malformed.
Digest FrameDigestOf(const ContributionHeader& h) {
  return DigestFromBytes(h.frame_digest()).value_or(Digest());
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
  for (const SiteSteps& s : PlanSteps(paces, nominal)) book_.at(s.life.name).steps_assigned = s.steps;
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
  opening.set_codec(is_dense ? kDenseSpec : state_.run.codec);
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

Coordinator::FrameId Coordinator::FrameIdOf(const ContributionHeader& h) {
  return {h.life().site(), h.key().round(), h.frame_digest()};
}

void Coordinator::Settle(const ContributionHeader& h) {
  settled_.insert(FrameIdOf(h));
  // Uploads end with the session that saw them dropped, so old ones cannot come again.
  for (auto it = settled_.begin(); it != settled_.end();) {
    it = std::get<1>(*it) + kRememberedRounds < last_round_ ? settled_.erase(it) : std::next(it);
  }
}

absl::Status Coordinator::CheckNews(const ContributionHeader& h) const {
  const FrameId id = FrameIdOf(h);
  const std::string what =
      absl::StrCat("the frame of site ", h.life().site(), " made for round ", h.key().round());
  if (settled_.count(id) > 0)
    return absl::AbortedError(absl::StrCat(what, " was refused before, or its round aborted"));
  const absl::StatusOr<Digest> base = DigestFromBytes(h.base_digest());
  if (base.ok() && window_.RoundOfFrame({h.life().site(), FrameDigestOf(h)}, *base).has_value())
    return absl::AlreadyExistsError(absl::StrCat(what, " is committed"));
  bool is_here = decoding_.count(id) > 0;
  for (const auto& [life, r] : arrived_) is_here |= FrameIdOf(r.header) == id;
  for (const Received& r : held_) is_here |= FrameIdOf(r.header) == id;
  return is_here ? absl::AlreadyExistsError(absl::StrCat(what, " is here")) : absl::OkStatus();
}

int64_t Coordinator::StepsSpokenFor(const SiteName& site) const {
  int64_t steps = 0;
  for (const auto& [life, r] : arrived_) {
    if (life.name == site) steps = std::max(steps, r.header.inner_steps());
  }
  return steps;
}

std::string Coordinator::CodecOfRound(int64_t round) const {
  if (auto it = codecs_.find(round); it != codecs_.end()) return it->second;
  for (const CommitRecord& c : state_.commits) {
    if (c.key().round() == round && !c.codec().empty()) return c.codec();
  }
  return state_.run.codec;
}

absl::Status Coordinator::UploadOffered(const ContributionHeader& h) {
  if (h.run_id() != state_.run.run_id) {
    return absl::FailedPreconditionError(
        absl::StrCat("this is run ", state_.run.run_id, ", not ", h.run_id()));
  }
  const SiteLife life = LifeOf(h.life());
  if (absl::Status s = membership_.CheckLife(life); !s.ok()) return s;
  if (absl::Status s = CheckNews(h); !s.ok()) {
    // The word may have been lost with a session.
    if (round_ != nullptr && opening_ && round_->HasFrame(life.name, FrameDigestOf(h)))
      SendOutcome(h, true, "already here", false);
    return s;
  }
  if (phase_ == Phase::kFinished || phase_ == Phase::kFarewell)
    return absl::OutOfRangeError("the run is over");
  const absl::StatusOr<std::unique_ptr<Codec>> codec = ParseCodecSpec(CodecOfRound(h.key().round()));
  if (!codec.ok()) return codec.status();
  const int64_t bound = (*codec)->BoundBytes(anchor_->table().layout());
  if (h.frame_bytes() < 0 || h.frame_bytes() > bound) {
    return absl::InvalidArgumentError(absl::StrCat("a frame of ", h.frame_bytes(), " bytes from site ",
                                                   life.name, " is above the bound of ", bound));
  }
  return absl::OkStatus();
}

void Coordinator::UploadReceived(const ContributionHeader& header, SharedBytes frame) {
  if (is_failed_ || phase_ == Phase::kFinished || phase_ == Phase::kFarewell) return;
  if (absl::Status s = CheckNews(header); !s.ok()) {
    if (absl::IsAborted(s)) SendOutcome(header, false, std::string(s.message()), false);
    return;  // what is here already was answered, or will be
  }
  decoding_.insert(FrameIdOf(header));
  auto decoded =
      std::make_shared<absl::StatusOr<std::shared_ptr<const DecodedFrame>>>(absl::InternalError("not read"));
  seams_.work->Run(
      "decode",
      [this, decoded, frame, spec = CodecOfRound(header.key().round())] {
        *decoded = anchor_->Decode(spec, *frame);
      },
      Guard([this, decoded, header] { FrameDecoded(header, std::move(*decoded)); }));
}

void Coordinator::FrameDecoded(const ContributionHeader& header,
                               absl::StatusOr<std::shared_ptr<const DecodedFrame>> frame) {
  decoding_.erase(FrameIdOf(header));
  if (!frame.ok()) {
    // Damaged on the way or by the sender: once more, then never.
    if (++damaged_[header.life().site() + header.frame_digest()] == 1) {
      return SendOutcome(header, false, std::string(frame.status().message()), true);
    }
    return RefuseContribution(header, frame.status());
  }
  Received r;
  r.header = header;
  r.frame = *std::move(frame);
  if (phase_ == Phase::kOpen) return Admit(r);
  held_.push_back(std::move(r));
}

void Coordinator::Admit(const Received& r) {
  if (phase_ != Phase::kOpen) {
    held_.push_back(r);
    return;
  }
  ContributionClaim claim;
  claim.life = LifeOf(r.header.life());
  claim.key = {r.header.key().round(), r.header.key().fragment()};
  const absl::StatusOr<Digest> base = DigestFromBytes(r.header.base_digest());
  const absl::StatusOr<Digest> frame = DigestFromBytes(r.header.frame_digest());
  if (!base.ok() || !frame.ok())
    return RefuseContribution(r.header, absl::InvalidArgumentError("bad digest"));
  claim.base = *base;
  claim.frame = *frame;
  AdmissionAnswer answer = AdmitContribution(claim, round_.get(), window_);
  if (answer.admission == Admission::kAdmit && opening_->is_last() && answer.is_late) {
    // The last round flushes what is carried: an older frame would take the seat of the dense one.
    answer.admission = Admission::kRefuse;
    answer.status = absl::OutOfRangeError("the last round takes only its own frames");
  }
  if (answer.admission == Admission::kRefuse) {
    if (absl::IsUnavailable(answer.status)) {
      held_.push_back(r);
      return;
    }
    RefuseContribution(r.header, answer.status);
    if (absl::IsDataLoss(answer.status)) SendResync(claim.life, answer.reason);
    return;
  }
  CoordinatorMessage out;
  ContributionOutcome* o = out.mutable_contribution_outcome();
  o->set_frame_digest(r.header.frame_digest());
  o->set_is_admitted(true);
  o->mutable_key()->set_round(answer.counted_in);
  o->set_reason(answer.reason);
  SendTo(claim.life.name, out);
  if (answer.admission == Admission::kDuplicate) return;
  std::vector<TrainedRange> ranges;
  for (const TrainedSpan& s : r.header.trained()) ranges.push_back({s.lease(), s.begin(), s.end()});
  if (absl::Status s = leases_->Contributed(claim.life, claim.frame, ranges); !s.ok()) {
    log_.Warning("site ", claim.life.name, " lists sequences it has no lease for: ", s.message());
  }
  const double rate = book_.at(claim.life.name).progress.upload_bytes_per_second();
  if (rate > 0) pace_[claim.life.name].Uploaded(absl::Seconds(r.header.frame_bytes() / rate));
  if (answer.is_late) {
    auto closed = quorum_at_.find(r.header.key().round());
    if (closed != quorum_at_.end()) grace_.LateArrival(closed->first, Now() - closed->second);
  }
  arrived_[claim.life] = r;
  last_arrived_ = claim.life.name;
  Decide(round_->ContributionArrived(claim.life, claim.frame, Now()));
  ArmTimers();
}

void Coordinator::SendOutcome(const ContributionHeader& header, bool is_admitted, const std::string& reason,
                              bool is_retryable) {
  CoordinatorMessage out;
  ContributionOutcome* o = out.mutable_contribution_outcome();
  o->set_frame_digest(header.frame_digest());
  o->set_is_admitted(is_admitted);
  if (is_admitted && opening_) *o->mutable_key() = opening_->key();
  o->set_reason(reason);
  o->set_is_retryable(is_retryable);
  SendTo(header.life().site(), out);
}

void Coordinator::RefuseContribution(const ContributionHeader& header, const absl::Status& status) {
  ++refused_;
  Settle(header);
  const SiteLife life = LifeOf(header.life());
  const std::string reason = absl::StrCat("contribution of site ", life.name, " to round ",
                                          header.key().round(), " refused: ", status.message());
  log_.Warning(reason);
  book_.at(life.name).last_miss_reason = reason;
  LedgerWrite write;
  write.events.push_back(MakeEvent(EventRecord::CONTRIBUTION_REFUSED, life, reason));
  // Told only once it is written, like everything.
  Persist(std::move(write), [this, header, reason] { SendOutcome(header, false, reason, false); });
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
  return record;
}

void Coordinator::CloseRound(const RoundDecision& decision) {
  phase_ = Phase::kCommitting;
  log_.Info("round ", opening_->key().round(), " closes: ", decision.reason);
  auto record = std::make_shared<CommitRecord>(MakeRecord(decision));
  CommitNotes notes;
  notes.close_delay_seconds = absl::ToDoubleSeconds(Now() - round_->last_arrival_at());
  for (const SiteLife& m : round_->Missing()) {
    book_.Missed(m.name,
                 absl::StrCat("round ", record->key().round(), " closed without it: ", decision.reason));
    if (notes.slowest_site.empty()) notes.slowest_site = m.name;
  }
  const absl::Time quorum_at = std::min(round_->quorum_at(), Now());
  quorum_at_[record->key().round()] = quorum_at;
  while (quorum_at_.size() > kOldestBaseRounds + 1) quorum_at_.erase(quorum_at_.begin());
  grace_.RoundClosed(record->key().round(),
                     round_->last_arrival_at() - std::min(quorum_at, round_->last_arrival_at()),
                     Now() - opened_at_);
  std::vector<std::shared_ptr<const DecodedFrame>> frames;
  for (const SiteLife& life : decision.included) frames.push_back(arrived_.at(life).frame);
  if (notes.slowest_site.empty()) notes.slowest_site = last_arrived_;
  const Averaging averaging = state_.run.run_file.exchange().averaging() == ExchangeConfig::CONTRIBUTORS
                                  ? Averaging::kContributors
                                  : Averaging::kPeers;
  auto result = std::make_shared<absl::StatusOr<AnchorKeeper::Result>>(absl::InternalError("not summed"));
  seams_.work->Run(
      "sum",
      [this, record, result, frames, averaging] {
        *result = anchor_->CommitRound(*record, frames, averaging);
      },
      Guard([this, record, result, notes] {
        if (!result->ok()) return Fail(result->status());
        StoreCommit(record, *std::move(*result), notes);
      }));
}

void Coordinator::StoreCommit(std::shared_ptr<CommitRecord> record, AnchorKeeper::Result result,
                              const CommitNotes& notes) {
  record->set_update_digest(DigestOf(absl::string_view(result.update)).ToBytes());
  record->set_update_bytes(result.update.size());
  record->set_state_digest(result.state_digest.ToBytes());
  for (const auto& [tensor, index] : result.left_out) {
    record->add_left_out()->set_tensor(tensor);
    record->mutable_left_out(record->left_out_size() - 1)->set_included_index(index);
  }
  *record->mutable_committed_at() = ToProto(seams_.loop->clock().Now());
  struct Job {
    std::string update;
    std::vector<LeaseRow> rows;
    LedgerWrite also;
    absl::Status status;
  };
  auto job = std::make_shared<Job>();
  job->update = std::move(result.update);
  for (const ImplausibleTensor& t : result.implausible) {
    const SiteLife life = LifeOf(record->included(t.frame).life());
    const std::string reason =
        absl::StrCat("tensor ", anchor_->table().tensors()[t.tensor].name, " of site ", life.name,
                     " refused in round ", record->key().round(), ": ", t.reason);
    log_.Warning(reason);
    job->also.events.push_back(MakeEvent(EventRecord::CONTRIBUTION_REFUSED, life, reason));
  }
  for (const IncludedContribution& c : record->included())
    leases_->Committed(c.life().site(), *DigestFromBytes(c.frame_digest()));
  job->rows = ToRows(leases_->Export());
  job->also.lease_rows = &job->rows;
  seams_.store->Run(
      "commit", [this, job, record] { job->status = seams_.ledger->Commit(*record, job->update, job->also); },
      Guard([this, job, record, notes] {
        if (!job->status.ok()) return Fail(job->status);
        for (const EventRecord& e : job->also.events) state_.events.push_back(e);
        RoundIsCommitted(*record, notes);
      }));
}

void Coordinator::RoundIsCommitted(const CommitRecord& record, CommitNotes notes) {
  state_.commits.push_back(record);
  state_.open.clear();
  schedule_step_ = record.schedule_step();
  bytes_since_snapshot_ += record.update_bytes();
  for (const IncludedContribution& c : record.included()) {
    const Received& r = arrived_.at(LifeOf(c.life()));
    book_.Included(LifeOf(c.life()), c.steps(), r.header.inner_steps());
  }
  window_.Committed(record.key().round(), *DigestFromBytes(record.state_digest()), CountedFramesOf(record));
  book_.TakeRoundSeconds(&notes.compute_seconds, &notes.wait_seconds);
  int64_t receivers = 0;
  for (const auto& [id, session] : sessions_) receivers += session.is_enlisted;
  notes.bytes_down = record.update_bytes() * receivers;
  notes_[record.key().round()] = notes;
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
  for (const SiteLife& m : round_->Missing())
    book_.Missed(m.name, absl::StrCat("round ", record.key().round(), " aborted: ", reason));
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
  job->values = anchor_->Values();
  const int keep = static_cast<int>(std::max<int64_t>(1, state_.run.run_file.storage().snapshots_kept()));
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

void Coordinator::RequestEvaluation(int64_t round, EvaluationScope scope) {
  SiteName fastest;
  double speed = -1;
  for (const auto& [site, session] : session_of_) {
    if (!IsEnlisted(site) || !membership_.CheckLife(sessions_.at(session).life).ok()) continue;
    const SiteEntry& e = book_.at(site);
    if (e.progress.steps_per_second() <= speed || e.is_resyncing) continue;
    // Between equals the present evaluator keeps the work, so that its steps stay assigned accordingly.
    speed = e.progress.steps_per_second() * (site == evaluator_ ? 1.1 : 1);
    fastest = site;
  }
  if (fastest.empty()) return;
  evaluator_ = fastest;
  evaluating_round_ = round;
  evaluating_scope_ = scope;
  evaluation_began_ = Now();
  CoordinatorMessage out;
  out.mutable_evaluate_anchor()->set_round(round);
  out.mutable_evaluate_anchor()->set_scope(scope);
  SendTo(fastest, out);
}

void Coordinator::BeginFarewell() {
  if (phase_ == Phase::kFarewell || phase_ == Phase::kFinished) return;
  phase_ = Phase::kFarewell;
  farewell_until_ = Now() + options_.farewell;
  log_.Info("all rounds are done; the final anchor is evaluated");
  MaybeSnapshot();
  if (held_out_end_ == 0) RequestEvaluation(anchor_->stamp().round, WHOLE);
  CheckFarewell();
  ArmTimers();
}

void Coordinator::CheckFarewell() {
  if (phase_ != Phase::kFarewell) return;
  const bool is_late = Now() >= farewell_until_;
  if (!is_late) {
    for (const auto& [site, session] : session_of_) {
      if (IsEnlisted(site) && applied_[site] < anchor_->stamp().round) return;
    }
    if (evaluating_round_ >= 0) return;
    if (held_out_end_ == 0) {
      // The evaluator went, or had moved on: another one, or the same again.
      if (session_of_.empty()) return;
      RequestEvaluation(anchor_->stamp().round, WHOLE);
      return;
    }
  }
  if (is_snapshot_running_) return;
  FinishRun();
}

void Coordinator::FinishRun() {
  phase_ = Phase::kFinished;
  LedgerWrite write;
  write.events.push_back(MakeEvent(EventRecord::FINISHED, {}, "the run is over"));
  for (const auto& [site, entry] : book_.all()) {
    if (IsEnlisted(site)) continue;
    if (const int64_t steps = book_.ProcessGone(site); steps > 0) {
      write.events.push_back(MakeEvent(EventRecord::FORFEITED, {site, 0}, "it was gone when the run ended"));
      write.events.back().set_steps(steps);
    }
  }
  Persist(std::move(write), [this] {
    CoordinatorMessage out;
    out.mutable_run_finished()->set_round(anchor_->stamp().round);
    out.mutable_run_finished()->set_state_digest(anchor_->AnchorDigest().ToBytes());
    out.mutable_run_finished()->set_reason("the run is over");
    Broadcast(out);
    log_.Info("run ", state_.run.run_id, " is finished after ", state_.commits.size(), " rounds");
    seams_.hub->PublishStatus(Status(/*all_commits=*/false));
    finished_();
  });
}

}  // namespace isthmus
