// Coordinator: evaluations of the anchor, and the end of the run.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "compression/codec_spec.h"
#include "daemon/coordinator/coordinator.h"
#include "daemon/coordinator/told_fields.h"

namespace isthmus {

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
  AskEvaluator();
}

void Coordinator::AskEvaluator() {
  evaluation_asked_ = Now();
  CoordinatorMessage out;
  out.mutable_evaluate_anchor()->set_round(evaluating_round_);
  out.mutable_evaluate_anchor()->set_scope(evaluating_scope_);
  SendTo(evaluator_, out);
}

// The subset first, so that the last round can be compared with those before it; then the whole part.
void Coordinator::RequestFinalEvaluation() {
  const int64_t round = anchor_->stamp().round;
  const bool has_subset = state_.run.run_file.evaluation().every_rounds() == 0 || held_out_.count(round) > 0;
  if (!has_subset) {
    RequestEvaluation(round, SUBSET);
  } else if (held_out_end_ == 0) {
    RequestEvaluation(round, WHOLE);
  }
}

void Coordinator::OnEvaluationDone(const SiteLife& life, const EvaluationDone& m) {
  if (life.name != evaluator_ || evaluating_round_ < 0 || m.scope() != evaluating_scope_) return;
  if (m.round() != evaluating_round_) return;  // the answer to an earlier request
  const int64_t round = evaluating_round_;
  evaluating_round_ = -1;
  if (m.tokens() > 0) {
    // What comes after it has its own time.
    farewell_until_ = std::max(farewell_until_, Now() + options_.farewell);
    book_.at(life.name).evaluation_time = Now() - evaluation_began_;
    const bool is_whole = m.scope() == WHOLE;
    EventRecord e = MakeEvent(EventRecord::EVALUATED, life,
                              !is_whole    ? "subset"
                              : round == 0 ? "whole, at the start"
                                           : "whole, at the end");
    e.set_round(round);
    e.set_loss(m.loss());
    e.set_tokens(std::min(m.tokens(), kMostTold));
    if (is_whole) {
      (round == 0 ? held_out_start_ : held_out_end_) = m.loss();
    } else {
      held_out_[round] = {m.loss(), e.tokens()};
    }
    LedgerWrite write;
    write.events.push_back(std::move(e));
    Persist(std::move(write), nullptr);
  }
  if (phase_ == Phase::kFarewell) CheckFarewell();
}

void Coordinator::BeginFarewell() {
  if (phase_ == Phase::kFarewell || phase_ == Phase::kFinished) return;
  phase_ = Phase::kFarewell;
  farewell_until_ = Now() + options_.farewell;
  log_.Info("all rounds are done; the final anchor is evaluated");
  MaybeSnapshot();
  RequestFinalEvaluation();
  CheckFarewell();
  ArmTimers();
}

void Coordinator::CheckFarewell() {
  if (phase_ != Phase::kFarewell) return;
  // A whole evaluation takes as long as the model is large and the site is busy; one that is gone is not
  // evaluating any more.
  if (evaluating_round_ >= 0 && Now() < evaluation_began_ + options_.longest_evaluation) {
    if (Now() >= evaluation_asked_ + options_.farewell) AskEvaluator();  // request or answer may be lost
    return;
  }
  const bool is_late = Now() >= farewell_until_;
  if (!is_late) {
    for (const auto& [site, session] : session_of_) {
      if (IsEnlisted(site) && applied_[site] < anchor_->stamp().round) return;
    }
    if (held_out_end_ == 0) {
      // The evaluator went, or had moved on: another one, or the same again.
      if (session_of_.empty()) return;
      RequestFinalEvaluation();
      return;
    }
  }
  if (is_snapshot_running_) return;
  FinishRun();
}

// Whether what the site carried went out with the run's last round.
bool Coordinator::IsInLastRound(const SiteName& site) const {
  if (state_.commits.empty() || !state_.commits.back().is_last()) return false;
  for (const IncludedContribution& c : state_.commits.back().included()) {
    if (c.life().site() == site) return true;
  }
  return false;
}

// Told to everybody when the run ends.
std::string Coordinator::EndText() const {
  const absl::StatusOr<CodecSpec> spec = ParseSpecText(state_.run.codec);
  const bool is_dense = spec.ok() && spec->kind == CodecSpec::Kind::kDense;
  if (is_dense || state_.run.run_file.rounds().dense_last_round()) return "the run is over";
  return "the run is over; its last round was not dense, so what sites still had to send is not in the "
         "weights";
}

void Coordinator::FinishRun() {
  phase_ = Phase::kFinished;
  LedgerWrite write;
  write.events.push_back(MakeEvent(EventRecord::FINISHED, {}, EndText()));
  CountInto(&write.events.back());
  for (const auto& [site, entry] : book_.all()) {
    const bool is_here = IsEnlisted(site);
    if (is_here && IsInLastRound(site)) continue;
    if (const int64_t steps = book_.ProcessGone(site); steps > 0) {
      write.events.push_back(
          MakeEvent(EventRecord::FORFEITED, {site, 0},
                    is_here ? "the last round closed without it" : "it was gone when the run ended"));
      write.events.back().set_steps(steps);
    }
  }
  Persist(std::move(write), [this] {
    CoordinatorMessage out;
    out.mutable_run_finished()->set_round(anchor_->stamp().round);
    out.mutable_run_finished()->set_state_digest(anchor_->AnchorDigest().ToBytes());
    out.mutable_run_finished()->set_reason(EndText());
    Broadcast(out);
    log_.Info("run ", state_.run.run_id, " is finished after ", state_.commits.size(),
              " rounds: ", EndText());
    seams_.hub->PublishStatus(Status(/*all_commits=*/false));
    finished_();
  });
}

}  // namespace isthmus
