// Coordinator: sessions, joins, leases, digests, evaluations.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/coordinator/coordinator.h"
#include "daemon/coordinator/told_fields.h"

namespace isthmus {
namespace {

// A site that is still wrong after so many ways to the anchor will be wrong after the next one too.
constexpr int kMostResyncsInVain = 4;

}  // namespace

Coordinator::Session* Coordinator::FindSession(SessionId session) {
  auto it = sessions_.find(session);
  return it == sessions_.end() ? nullptr : &it->second;
}

bool Coordinator::IsEnlisted(const SiteName& site) const {
  auto it = session_of_.find(site);
  return it != session_of_.end() && sessions_.at(it->second).is_enlisted;
}

void Coordinator::SendTo(const SiteName& site, const CoordinatorMessage& message) {
  auto it = session_of_.find(site);
  if (it != session_of_.end()) seams_.hub->Send(it->second, message);
}

void Coordinator::SendToLife(const SiteLife& life, const CoordinatorMessage& message) {
  auto it = session_of_.find(life.name);
  if (it != session_of_.end() && sessions_.at(it->second).life == life) seams_.hub->Send(it->second, message);
}

void Coordinator::Broadcast(const CoordinatorMessage& message) {
  for (const auto& [id, session] : sessions_) {
    if (session.is_enlisted) seams_.hub->Send(id, message);
  }
}

void Coordinator::SessionOpened(SessionId session) { sessions_[session]; }

void Coordinator::SessionClosed(SessionId session, absl::Status why) {
  NoticeAbsence();
  auto it = sessions_.find(session);
  if (it == sessions_.end()) return;
  const SiteLife life = it->second.life;
  sessions_.erase(it);
  if (life.name.empty()) return;
  auto of = session_of_.find(life.name);
  if (of == session_of_.end() || of->second != session) return;  // a newer session has taken over
  session_of_.erase(of);
  book_.at(life.name).lost_at = Now();
  // Once the run is over its workers end: that is no death.
  HandleChanges(phase_ == Phase::kFinished ? membership_.Departed(life, Now())
                                           : membership_.ConnectionLost(life, Now()));
  if (evaluator_ == life.name) evaluating_round_ = -1;
  ArmTimers();
}

void Coordinator::MessageReceived(SessionId session, WorkerMessage m) {
  NoticeAbsence();
  Session* s = FindSession(session);
  if (s == nullptr || is_failed_) return;
  if (m.has_hello()) {
    if (s->life.name.empty()) OnHello(session, m.hello());  // else it came twice
    return;
  }
  if (s->life.name.empty())
    return Refuse(session, "hello", "the first message of a session is a hello", true);
  const SiteLife life = s->life;
  if (absl::Status status = membership_.CheckLife(life); !status.ok() && phase_ != Phase::kFinished) {
    CoordinatorMessage out;
    out.mutable_evicted()->set_reason(std::string(status.message()));
    seams_.hub->Send(session, out);
    return seams_.hub->CloseSession(session);
  }
  if (m.has_heartbeat()) {
    OnHeartbeat(session, life, m.heartbeat());
  } else {
    HandleChanges(membership_.Heard(life, Now()));
  }
  if (m.has_enlist()) OnEnlist(session, m.enlist());
  if (m.has_caught_up()) OnCaughtUp(session, life, m.caught_up());
  if (m.has_lease_request()) OnLeaseRequest(life, m.lease_request());
  if (m.has_anchor_applied()) OnAnchorApplied(life, m.anchor_applied());
  if (m.has_evaluation_done()) OnEvaluationDone(life, m.evaluation_done());
  if (m.has_forfeited()) OnForfeited(life, m.forfeited());
  if (m.has_leaving()) OnLeaving(session, life, m.leaving());
  MaybeOpenRound();  // a suspect that spoke may be the one that was missing
  ArmTimers();
}

void Coordinator::Refuse(SessionId session, const std::string& field, const std::string& reason,
                         bool may_retry) {
  CoordinatorMessage out;
  out.mutable_refused()->set_field(field);
  out.mutable_refused()->set_reason(reason);
  out.mutable_refused()->set_may_retry(may_retry);
  seams_.hub->Send(session, out);
  seams_.hub->CloseSession(session);
  log_.Warning("refused a session: ", field, ": ", reason);
}

void Coordinator::OnHello(SessionId session, const Hello& hello) {
  const SiteName& site = hello.site();
  if (hello.protocol_version() != kProtocolVersion) {
    return Refuse(session, "protocol_version",
                  absl::StrCat("the worker speaks version ", hello.protocol_version(), ", this coordinator ",
                               kProtocolVersion),
                  false);
  }
  if (hello.run_name() != state_.run.run_file.name()) {
    return Refuse(session, "run_name",
                  absl::StrCat("this coordinator keeps run '", state_.run.run_file.name(), "', not '",
                               OneLine(hello.run_name()), "'"),
                  false);
  }
  if (absl::Status named = CheckSiteName(site); !named.ok()) {
    return Refuse(session, "site", std::string(named.message()), false);
  }
  if (phase_ == Phase::kFinished) {
    CoordinatorMessage out;
    out.mutable_run_finished()->set_round(anchor_->stamp().round);
    out.mutable_run_finished()->set_reason(EndText());
    seams_.hub->Send(session, out);
    return seams_.hub->CloseSession(session);
  }
  const SiteLife old{site, hello.incarnation()};
  if (hello.incarnation() > 0 && membership_.CheckLife(old).ok()) {
    // The same process over a new connection.
    auto it = session_of_.find(site);
    if (it != session_of_.end() && it->second != session) {
      const SessionId stale = it->second;
      session_of_.erase(it);
      sessions_.erase(stale);
      seams_.hub->CloseSession(stale);
      if (evaluator_ == site) evaluating_round_ = -1;  // what it was asked may be lost with it
    }
    HandleChanges(membership_.ConnectionRestored(old, Now()));
    return Welcomed(session, old);
  }
  OnNewcomer(session, hello);
}

void Coordinator::OnNewcomer(SessionId session, const Hello& hello) {
  int64_t newest = 0;
  for (const auto& [name, incarnation] : state_.incarnations) {
    if (name == hello.site()) newest = incarnation;
  }
  const SiteLife life{hello.site(), newest + 1};
  JoinAnswer answer = membership_.JoinRequested(life.name, life.incarnation, Now());
  HandleChanges(answer.effects);
  if (!answer.status.ok()) {
    return Refuse(session, "site", std::string(answer.status.message()), absl::IsUnavailable(answer.status));
  }
  EventRecord joined = MakeEvent(EventRecord::JOINED, life, absl::StrCat("site ", life.name, " joined"));
  LedgerWrite write;
  if (hello.incarnation() == 0) {
    if (const int64_t steps = book_.NewProcess(life.name, life.incarnation, StepsSpokenFor(life.name));
        steps > 0) {
      EventRecord e = MakeEvent(EventRecord::FORFEITED, {life.name, newest}, "its process died");
      e.set_steps(steps);
      write.events.push_back(std::move(e));
    }
  }
  book_.at(life.name).lease_in_flight = 0;
  book_.at(life.name).is_resyncing = false;
  joined.set_is_new_process(hello.incarnation() == 0);
  write.events.push_back(std::move(joined));
  write.incarnations.emplace_back(life.name, life.incarnation);
  bool is_known = false;
  for (auto& [name, incarnation] : state_.incarnations) {
    if (name != life.name) continue;
    incarnation = life.incarnation;
    is_known = true;
  }
  if (!is_known) state_.incarnations.emplace_back(life.name, life.incarnation);
  sessions_[session].life = life;
  session_of_[life.name] = session;
  Persist(std::move(write), [this, session, life] {
    Session* s = FindSession(session);
    if (s != nullptr && s->life == life) Welcomed(session, life);
  });
}

void Coordinator::Welcomed(SessionId session, const SiteLife& life) {
  sessions_[session].life = life;
  sessions_[session].is_enlisted = false;
  session_of_[life.name] = session;
  CoordinatorMessage out;
  Welcome* w = out.mutable_welcome();
  w->set_run_id(state_.run.run_id);
  w->set_incarnation(life.incarnation);
  *w->mutable_run_file() = state_.run.run_file;
  w->set_layout_digest(state_.run.layout_digest);
  w->set_data_digest(state_.run.data_digest);
  w->set_codec(state_.run.codec);
  w->set_total_schedule_steps(options_.planned_rounds * state_.run.run_file.rounds().inner_steps_per_round());
  seams_.hub->Send(session, out);
}

std::pair<std::string, std::string> Coordinator::FindMismatch(const SiteLife& life, const Enlist& e) const {
  const RunFile& run = state_.run.run_file;
  if (e.layout_digest() != state_.run.layout_digest) {
    return {"layout_digest", absl::StrFormat("the worker's model layout is %016x, the run's %016x",
                                             e.layout_digest(), state_.run.layout_digest)};
  }
  if (e.vocabulary() != run.model().vocabulary()) {
    return {"vocabulary",
            absl::StrCat("the worker has ", e.vocabulary(), " tokens, the run ", run.model().vocabulary())};
  }
  if (e.data_sequences() < 1) return {"data", "there is no training sequence in the worker's data"};
  if (e.data_sequences() > kMostTold) return {"data", "the worker's data has more sequences than can be"};
  if (e.tokens_per_step() < 1 || e.tokens_per_step() > kMostTold) {
    return {"tokens_per_step", absl::StrCat("a step of ", e.tokens_per_step(), " tokens cannot be")};
  }
  if (run.data().mode() == DataConfig::PER_SITE) return {};
  if (!DigestFromBytes(e.data_digest()).ok())
    return {"data_digest", "the worker's data digest is not 16 bytes"};
  if (!state_.run.data_digest.empty() && e.data_digest() != state_.run.data_digest) {
    return {"data_digest", "the worker's data file is not the one this run trains on (or it changed since)"};
  }
  return {};
}

void Coordinator::OnEnlist(SessionId session, const Enlist& enlist) {
  Session* s = FindSession(session);
  if (s == nullptr || s->is_enlisted) return;
  const SiteLife life = s->life;
  auto [field, reason] = FindMismatch(life, enlist);
  if (field.empty() && state_.run.run_file.data().mode() == DataConfig::PER_SITE) {
    if (absl::Status added = leases_->AddSite(life.name, enlist.data_sequences()); !added.ok()) {
      field = "data";
      reason = std::string(added.message());
    }
  }
  if (!field.empty()) {
    pending_events_.push_back(MakeEvent(EventRecord::JOIN_REFUSED, life, absl::StrCat(field, ": ", reason)));
    Refuse(session, field, reason, false);
    return HandleChanges(membership_.Departed(life, Now()));
  }
  book_.at(life.name).tokens_per_step = enlist.tokens_per_step();
  auto enlisted = [this, session, life, enlist] {
    Session* s = FindSession(session);
    if (s == nullptr || s->life != life || s->is_enlisted) return;
    s->is_enlisted = true;
    CoordinatorMessage out;
    *out.mutable_enlisted() =
        PlanCatchUp(servable(), enlist.anchor_round(), life.name, enlist.pending_frame_digest());
    seams_.hub->Send(session, out);
    if (round_ != nullptr && phase_ == Phase::kOpen && round_->IsMember(life)) TellOpening(life);
    if (phase_ == Phase::kFarewell) CheckFarewell();
  };
  if (state_.run.run_file.data().mode() != DataConfig::PER_SITE && state_.run.data_digest.empty()) {
    state_.run.data_digest = enlist.data_digest();
    state_.run.data_sequences = enlist.data_sequences();
    leases_ = std::make_unique<DataLeases>(DataMode::kShared, enlist.data_sequences());
    LedgerWrite write;
    write.data_digest = enlist.data_digest();
    write.data_sequences = enlist.data_sequences();
    return Persist(std::move(write), enlisted);
  }
  enlisted();
}

void Coordinator::OnCaughtUp(SessionId session, const SiteLife& life, const CaughtUp& m) {
  SiteEntry& entry = book_.at(life.name);
  const absl::StatusOr<Digest> digest = DigestFromBytes(m.state_digest());
  ++digests_compared_;
  if (!digest.ok() || !window_.AgeOf(*digest).has_value()) {
    ++digests_deviating_;
    entry.is_resyncing = false;
    const std::string reason = absl::StrCat("site ", life.name, " caught up to round ", m.round(),
                                            " with a digest that was never committed");
    if (++entry.resyncs_in_vain < kMostResyncsInVain) return SendResync(life, reason);
    Refuse(session, "state_digest",
           absl::StrCat(reason, ", ", kMostResyncsInVain, " times in a row; its machine computes wrongly"),
           false);
    return HandleChanges(membership_.Departed(life, Now()));
  }
  entry.is_resyncing = false;
  entry.resyncs_in_vain = 0;
  applied_[life.name] = std::max(applied_[life.name], m.round());
  HandleChanges(membership_.CaughtUp(life, Now()));
  MaybeOpenRound();
  if (phase_ == Phase::kFarewell) CheckFarewell();
}

void Coordinator::OnHeartbeat(SessionId session, const SiteLife& life, const Heartbeat& m) {
  HandleChanges(membership_.HeartbeatReceived(life, Now()));
  SiteProgress progress = m.progress();
  progress.set_activity(OneLine(progress.activity()));
  book_.ProgressReported(life.name, progress, Now());
  CoordinatorMessage out;
  out.mutable_heartbeat_echo()->set_token(m.token());
  seams_.hub->Send(session, out);
}

void Coordinator::OnLeaseRequest(const SiteLife& life, const LeaseRequest& m) {
  SiteEntry& entry = book_.at(life.name);
  if (entry.lease_in_flight == m.number()) return;  // asked twice
  // Granted before, and the word was lost: the same again.
  DataLease lease = leases_->Find(life, m.number()).value_or(DataLease());
  if (lease.number == 0) {
    absl::StatusOr<DataLease> next = leases_->Next(life, std::max<int64_t>(1, m.sequences()));
    if (!next.ok()) {
      // Told once: whoever asks goes on asking.
      if (entry.has_lease_trouble) return;
      entry.has_lease_trouble = true;
      return log_.Warning("no data lease for ", life.name, ": ", next.status().message());
    }
    lease = *next;
    entry.has_lease_trouble = false;
  }
  entry.lease_in_flight = m.number();
  PersistLeases({}, [this, lease] {
    SiteEntry& entry = book_.at(lease.life.name);
    if (entry.lease_in_flight == lease.number) entry.lease_in_flight = 0;
    CoordinatorMessage out;
    LeaseGranted* granted = out.mutable_lease_granted();
    granted->set_number(lease.number);
    granted->mutable_range()->set_pass(lease.range.pass);
    granted->mutable_range()->set_begin(lease.range.begin);
    granted->mutable_range()->set_end(lease.range.end);
    SendToLife(lease.life, out);
  });
}

void Coordinator::OnAnchorApplied(const SiteLife& life, const AnchorApplied& m) {
  for (auto it = state_.commits.rbegin(); it != state_.commits.rend(); ++it) {
    if (it->key().round() != m.round()) continue;
    ++digests_compared_;
    if (it->state_digest() == m.state_digest()) {
      applied_[life.name] = std::max(applied_[life.name], m.round());
    } else {
      ++digests_deviating_;
      SendResync(life, absl::StrCat("the anchor of site ", life.name, " deviates after round ", m.round()));
    }
    break;
  }
  if (phase_ == Phase::kFarewell) CheckFarewell();
}

void Coordinator::SendResync(const SiteLife& life, const std::string& reason) {
  SiteEntry& entry = book_.at(life.name);
  if (entry.is_resyncing) return;
  entry.is_resyncing = true;
  log_.Warning(reason, "; it is resynced");
  pending_events_.push_back(MakeEvent(EventRecord::RESYNCED, life, reason));
  CoordinatorMessage out;
  out.mutable_resync()->set_reason(reason);
  *out.mutable_resync()->mutable_path() = PlanResync(servable());
  SendTo(life.name, out);
}

void Coordinator::OnForfeited(const SiteLife& life, const isthmus::Forfeited& said) {
  isthmus::Forfeited m = said;
  MakePlausible(&m);
  m.set_reason(OneLine(m.reason()));
  book_.Forfeited(life.name, m);
  EventRecord e = MakeEvent(EventRecord::FORFEITED, life, m.reason());
  e.set_square_sum(m.square_sum());
  e.set_steps(m.steps());
  e.set_inner_steps(m.inner_steps());
  LedgerWrite write;
  write.events.push_back(std::move(e));
  std::vector<TrainedRange> ranges;
  for (const TrainedSpan& s : m.trained()) ranges.push_back({s.lease(), s.begin(), s.end()});
  leases_->Forfeited(life, ranges);
  PersistLeases(std::move(write), nullptr);
}

void Coordinator::OnLeaving(SessionId session, const SiteLife& life, const Leaving& m) {
  book_.at(life.name).is_forfeit_booked = true;  // it said itself what it could not hand over
  HandleChanges(membership_.Departed(life, Now()));
  seams_.hub->CloseSession(session);
}

void Coordinator::SiteIsGone(const MemberEffect& effect, EventRecord::Kind kind) {
  leases_->SiteGone(effect.life);
  LedgerWrite write;
  write.events.push_back(MakeEvent(kind, effect.life, effect.reason));
  PersistLeases(std::move(write), nullptr);
  if (evaluator_ == effect.life.name) evaluating_round_ = -1;
  if (round_ != nullptr && phase_ == Phase::kOpen) {
    Decide(round_->SiteGone(effect.life, kind == EventRecord::LEFT ? "left" : "died", Now()));
  }
  if (phase_ == Phase::kFarewell) CheckFarewell();
}

void Coordinator::HandleChanges(const MemberEffects& effects) {
  for (const MemberEffect& e : effects) {
    log_.Info(e.reason);
    switch (e.change) {
      case MemberChange::kDied:
        SiteIsGone(e, EventRecord::DIED);
        break;
      case MemberChange::kLeft:
        SiteIsGone(e, EventRecord::LEFT);
        break;
      case MemberChange::kEvicted: {
        CoordinatorMessage out;
        out.mutable_evicted()->set_reason(e.reason);
        SendTo(e.life.name, out);
        auto it = session_of_.find(e.life.name);
        if (it != session_of_.end()) seams_.hub->CloseSession(it->second);
        SiteIsGone(e, EventRecord::DIED);
        break;
      }
      default:
        break;
    }
  }
}

}  // namespace isthmus
