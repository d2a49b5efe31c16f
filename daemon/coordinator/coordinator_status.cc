// Coordinator: the answer to "what is the run doing, and what is it waiting for".
#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/coordinator/coordinator.h"
#include "daemon/coordinator/proto_time.h"

namespace isthmus {
namespace {

constexpr size_t kLastCommits = 8;

std::string FeedbackText(const ExchangeConfig& exchange) {
  if (exchange.error_feedback() == ExchangeConfig::ERROR_FEEDBACK_UNSPECIFIED) return "";
  const std::string form = ExchangeConfig::ErrorFeedback_Name(exchange.error_feedback());
  return exchange.carry_decay() == 1 ? form : absl::StrCat(form, " x ", exchange.carry_decay());
}

void AddEntry(const SiteEntry& e, SiteStatus* s) {
  *s->mutable_progress() = e.progress;
  s->set_last_miss_reason(e.last_miss_reason);
  s->set_rounds_included(e.rounds_included);
  s->set_rounds_missed(e.rounds_missed);
  s->set_inner_steps_assigned(e.steps_assigned);
  s->set_forfeited_square_sum(e.forfeited_square_sum);
  s->set_forfeited_steps(e.forfeited_steps);
  s->set_contributed_steps(e.contributed_steps);
}

}  // namespace

CommitSummary Coordinator::Summarize(size_t index) const {
  const CommitRecord& c = state_.commits[index];
  CommitSummary s;
  s.set_round(c.key().round());
  s.set_included(c.included_size());
  s.set_expected(c.expected());
  s.set_close_kind(c.close_kind());
  s.set_reason(c.reason());
  s.set_state_digest(c.state_digest());
  double loss = 0;
  int64_t tokens = 0, steps = 0, up = 0;
  for (const IncludedContribution& i : c.included()) {
    loss += i.loss() * i.tokens();
    tokens += i.tokens();
    steps += i.steps();
    up += i.frame_bytes();
  }
  s.set_training_loss(tokens > 0 ? loss / tokens : 0);
  s.set_tokens(tokens);
  s.set_steps(steps);
  s.set_tokens_per_second(c.round_seconds() > 0 ? tokens / c.round_seconds() : 0);
  s.set_bytes_up(up);
  s.set_round_seconds(c.round_seconds());
  s.set_is_last(c.is_last());
  *s.mutable_committed_at() = c.committed_at();
  *s.mutable_traffic() = c.traffic();
  s.set_residual_norm(std::sqrt(c.residual_square_sum()));
  s.set_bytes_down(c.update_bytes() * c.expected());
  s.set_compute_seconds(c.compute_seconds());
  s.set_wait_seconds(c.wait_seconds());
  s.set_slowest_site(c.slowest_site());
  s.set_close_delay_seconds(c.close_delay_seconds());
  if (const auto it = held_out_.find(c.key().round()); it != held_out_.end()) {
    s.set_held_out_loss(it->second.loss);
    s.set_held_out_tokens(it->second.tokens);
  }
  return s;
}

void Coordinator::AddSites(RunStatus* status) const {
  std::map<SiteName, SiteStatus> sites;
  for (const auto& [name, incarnation] : state_.incarnations) {
    const SiteEntry* e = book_.find(name);
    if (e == nullptr || e->state_before.empty()) continue;
    sites[name].set_incarnation(incarnation);
    sites[name].set_state(e->state_before);
  }
  for (const MemberStatus& m : membership_.Snapshot(Now())) {
    SiteStatus& s = sites[m.life.name];
    s.set_incarnation(m.life.incarnation);
    s.set_state(std::string(SiteStateName(m.state)));
    s.set_silence_seconds(absl::ToDoubleSeconds(m.silence));
    s.set_has_contributed(arrived_.count(m.life) > 0);
  }
  for (auto& [name, s] : sites) {
    s.set_site(name);
    if (const SiteEntry* e = book_.find(name)) AddEntry(*e, &s);
    *status->add_sites() = std::move(s);
  }
}

void Coordinator::AddTraffic(RunStatus* status) const {
  const ExchangeConfig& exchange = state_.run.run_file.exchange();
  TransferCount all = seams_.hub->transferred();
  all -= moved_at_commit_;
  all += moved_in_rows_;
  status->set_bytes_in(all.bytes_in);
  status->set_bytes_out(all.bytes_out);
  all.classes.AppendTo(/*only_moved=*/false, status->mutable_traffic());
  for (TrafficBytes& row : *status->mutable_traffic()) {
    if (row.kind() == TrafficBytes::CONTRIBUTION) row.set_codec(state_.run.codec);
    if (row.kind() == TrafficBytes::UPDATE) row.set_codec(exchange.update_codec());
    if (row.kind() == TrafficBytes::SNAPSHOT) row.set_codec(exchange.snapshot_codec());
    if (row.kind() == TrafficBytes::ACTIVATION) row.set_codec(exchange.activation_codec());
    if (row.kind() == TrafficBytes::ACTIVATION_GRADIENT) row.set_codec(exchange.activation_gradient_codec());
  }
  status->set_is_update_recompressed(IsUpdateRecompressed());
  if (!state_.commits.empty())
    status->set_residual_norm(std::sqrt(state_.commits.back().residual_square_sum()));
  double forfeited = 0;
  for (const EventRecord& e : state_.events) {
    if (e.kind() != EventRecord::HUB_FORFEITED) continue;
    forfeited += e.square_sum();
    if (e.round() == state_.commits.back().key().round()) status->set_residual_norm(0);
  }
  status->set_residual_forfeited_square_sum(forfeited);
}

std::string Coordinator::WaitingFor() const {
  switch (phase_) {
    case Phase::kWaiting: {
      const RoundConfig& r = state_.run.run_file.rounds();
      const int64_t wanted = state_.commits.empty() ? std::max<int64_t>(1, r.start_sites()) : 1;
      int64_t ready = 0, joining = 0;
      for (const MemberStatus& m : membership_.Snapshot(Now())) {
        ready += m.state == SiteState::kReady || m.state == SiteState::kActive;
        joining += m.state == SiteState::kJoining;
      }
      return absl::StrCat("sites to open a round: ", ready, " ready of ", wanted, " wanted",
                          joining > 0 ? ", " : "", joining > 0 ? absl::StrCat(joining, " catching up") : "");
    }
    case Phase::kOpening:
      return "the ledger to write down the next round's opening";
    case Phase::kOpen:
      return round_->WaitingFor(Now());
    case Phase::kCommitting:
      return absl::StrCat("the sum of round ", opening_->key().round(), " to be made durable");
    case Phase::kFarewell:
      return evaluating_round_ >= 0 ? absl::StrCat("site ", evaluator_, " to evaluate the final anchor")
                                    : "sites to apply the last commit";
    case Phase::kFinished:
      return "nothing: the run is over";
  }
  return "";
}

RunStatus Coordinator::Status(bool all_commits) const {
  RunStatus s;
  const RunFile& run = state_.run.run_file;
  s.set_run_name(run.name());
  s.set_run_id(state_.run.run_id);
  static constexpr const char* kPhases[] = {"WAITING_FOR_SITES", "OPENING",  "ROUND_OPEN",
                                            "COMMITTING",        "FAREWELL", "FINISHED"};
  s.set_phase(kPhases[static_cast<int>(phase_)]);
  s.set_round(opening_ ? opening_->key().round() : last_round_);
  s.set_waiting_for(WaitingFor());
  AddSites(&s);
  const size_t from =
      all_commits || state_.commits.size() < kLastCommits ? 0 : state_.commits.size() - kLastCommits;
  for (size_t i = from; i < state_.commits.size(); ++i) *s.add_commits() = Summarize(i);
  s.set_rounds_committed(state_.commits.size());
  s.set_rounds_aborted(state_.aborts.size());
  s.set_contributions_refused(refused_);
  s.set_tokens(CommittedTokens());
  s.set_total_rounds(run.rounds().total_rounds());
  s.set_total_tokens(run.rounds().total_tokens());
  if (!state_.commits.empty()) s.set_state_digest(state_.commits.back().state_digest());
  s.set_disk_bytes(seams_.ledger->DiskBytes());
  if (!state_.snapshots.empty()) {
    // Kept snapshots, one being written, and updates of up to half a snapshot behind each.
    const int64_t kept = std::max<int64_t>(2, run.storage().snapshots_kept());
    const SnapshotInfo& newest = state_.snapshots.back();
    // Residuals: two, and one being written.
    const int64_t residuals = IsUpdateRecompressed() ? 12 * anchor_->table().layout().total() : 0;
    s.set_disk_bound_bytes(newest.bytes() * (kept + 1) * 3 / 2 + newest.packed_bytes() * (kept + 1) * 9 / 8 +
                           residuals + (int64_t{64} << 20));
  }
  s.set_parameters(anchor_->table().layout().total());
  s.set_codec(state_.run.codec);
  s.set_error_feedback(FeedbackText(run.exchange()));
  AddTraffic(&s);
  for (const auto& [site, e] : book_.all()) {
    s.set_forfeited_square_sum(s.forfeited_square_sum() + e.forfeited_square_sum);
    s.set_forfeited_steps(s.forfeited_steps() + e.forfeited_steps);
  }
  const LeaseCounts leases = leases_->Counts();
  s.set_sequences_trained(leases.trained_once);
  s.set_sequences_trained_again(leases.trained_again);
  s.set_held_out_loss_start(held_out_start_);
  s.set_held_out_loss_end(held_out_end_);
  s.set_digests_compared(compared_in_rows_ + digests_compared_);
  s.set_digests_deviating(deviating_in_rows_ + digests_deviating_);
  if (phase_ == Phase::kOpen) s.set_seconds_since_open(absl::ToDoubleSeconds(Now() - opened_at_));
  s.set_run_restarts(state_.restarts);
  *s.mutable_started_at() = ToProto(started_wall_);
  return s;
}

}  // namespace isthmus
