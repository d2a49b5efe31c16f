// Worker: the session with the coordinator and what its messages do.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/worker/worker.h"

namespace isthmus {
namespace {

constexpr absl::Duration kAnswerTimeout = absl::Seconds(30);
constexpr absl::Duration kAskAgain = absl::Seconds(5);  // a lease request without an answer is repeated

}  // namespace

void Worker::Start() {
  give_up_at_ = seams_.loop->clock().SteadyNow() + options_.give_up_after;
  Dial();
}

void Worker::Dial() {
  if (has_ended_) return;
  seams_.link->Dial(this, seams_.loop->clock().SteadyNow() + options_.dial_timeout);
}

void Worker::SessionOpened() {
  is_open_ = true;
  ++session_epoch_;
  SendHello();
}

void Worker::SendHello() {
  WorkerMessage m;
  Hello* hello = m.mutable_hello();
  hello->set_protocol_version(kProtocolVersion);
  hello->set_run_name(options_.run_name);
  hello->set_site(options_.site);
  hello->set_software(options_.software);
  hello->set_incarnation(life_.incarnation());
  Send(m);
  AwaitAnswer("its hello");
}

// A session whose first questions nobody answers is no use.
void Worker::AwaitAnswer(const std::string& to_what) {
  seams_.loop->Cancel(answer_timer_);
  answer_timer_ = seams_.loop->RunAfter(
      kAnswerTimeout, Guard([this, to_what] {
        answer_timer_ = 0;
        RestartSession(absl::StrCat("no answer to ", to_what, " for ", absl::FormatDuration(kAnswerTimeout)));
      }));
}

void Worker::SessionClosed(absl::Status why) {
  if (has_ended_) return;
  if (is_leaving_said_) return End(absl::OkStatus());
  const absl::Time now = seams_.loop->clock().SteadyNow();
  if (is_enlisted_) give_up_at_ = now + options_.give_up_after;
  is_open_ = is_enlisted_ = is_welcome_ = is_lease_requested_ = false;
  for (TimerId* id : {&beat_timer_, &answer_timer_, &redial_timer_}) {
    seams_.loop->Cancel(*id);
    *id = 0;
  }
  catch_up_.reset();
  catch_up_target_ = -1;
  if (now >= give_up_at_) {
    End(absl::UnavailableError(absl::StrCat("no session with the coordinator for ",
                                            absl::FormatDuration(options_.give_up_after),
                                            ", giving up: ", why.message())));
    return;
  }
  const absl::Duration wait = std::min(backoff_.Next(), give_up_at_ - now);
  log_.Reason(absl::StrCat("session lost (", why.message(), "); dialling again, giving up after ",
                           absl::FormatDuration(options_.give_up_after)));
  redial_timer_ = seams_.loop->RunAfter(wait, Guard([this] { Dial(); }));
  if (!leaving_.empty()) EndUnlessInSession();
  Pump();
}

void Worker::MessageReceived(CoordinatorMessage m) {
  if (has_ended_) return;
  switch (m.body_case()) {
    case CoordinatorMessage::kWelcome:
      return OnWelcome(m.welcome());
    case CoordinatorMessage::kRefused:
      return OnRefused(m.refused());
    case CoordinatorMessage::kEnlisted:
      return OnEnlisted(m.enlisted());
    case CoordinatorMessage::kHeartbeatEcho: {
      const absl::Duration since = seams_.loop->clock().SteadyNow() - absl::UnixEpoch();
      round_trip_seconds_ =
          std::max(0.0, absl::ToDoubleSeconds(since - absl::Nanoseconds(m.heartbeat_echo().token())));
      return;
    }
    case CoordinatorMessage::kLeaseGranted: {
      const LeaseGranted& g = m.lease_granted();
      leases_.Granted(g.number(), g.range().pass(), g.range().begin(), g.range().end());
      is_lease_requested_ = false;
      return Pump();
    }
    case CoordinatorMessage::kContributionOutcome:
      return OnOutcome(m.contribution_outcome());
    case CoordinatorMessage::kRoundOpened:
      return OnRoundOpened(m.round_opened());
    case CoordinatorMessage::kRoundCommitted:
      return OnRoundCommitted(m.round_committed().record());
    case CoordinatorMessage::kRoundAborted:
      return OnRoundAborted(m.round_aborted().record());
    case CoordinatorMessage::kResync:
      return OnResync(m.resync());
    case CoordinatorMessage::kEvaluateAnchor:
      return OnEvaluate(m.evaluate_anchor());
    case CoordinatorMessage::kRunFinished:
      log_.Info("run finished at round ", m.run_finished().round(), ": ", m.run_finished().reason());
      return End(absl::OkStatus());
    case CoordinatorMessage::kEvicted:
      log_.Warning("evicted: ", m.evicted().reason(), "; asking to join again");
      return;  // the coordinator closes the session; the next one gets a new life
    case CoordinatorMessage::BODY_NOT_SET:
      log_.Warning("a message of a kind this version does not know was skipped");
  }
}

void Worker::OnWelcome(const Welcome& welcome) {
  if (!run_id_.empty() && welcome.run_id() != run_id_) {
    return End(absl::FailedPreconditionError(absl::StrCat("the coordinator now keeps run ", welcome.run_id(),
                                                          ", this worker belongs to run ", run_id_)));
  }
  if (life_.incarnation() != 0 && life_.incarnation() != welcome.incarnation()) {
    log_.Info("back as incarnation ", welcome.incarnation());
    leases_.Restart();
    // Lease numbers begin again: what names the old life's would be taken for the new one's.
    if (pending_) pending_->header.clear_trained();
    for (WorkerMessage& m : unsent_forfeits_) m.mutable_forfeited()->clear_trained();
  }
  is_welcome_ = true;
  seams_.loop->Cancel(answer_timer_);
  welcome_ = welcome;
  run_id_ = welcome.run_id();
  run_ = welcome.run_file();
  life_.set_site(options_.site);
  life_.set_incarnation(welcome.incarnation());
  sequences_per_step_ = std::max<int64_t>(1, run_.data().sequences_per_step());
  schedule_.peak_rate = run_.inner().peak_rate();
  schedule_.warmup_fraction = run_.inner().warmup_fraction();
  schedule_.floor_fraction = run_.inner().floor_fraction();
  schedule_.total_steps = std::max<int64_t>(1, welcome.total_schedule_steps());
  Beat();
  Pump();
}

void Worker::OnRefused(const Refused& refused) {
  const std::string text =
      absl::StrCat("refused by the coordinator: ", refused.field(), ": ", refused.reason());
  if (refused.may_retry()) {
    log_.Reason(absl::StrCat(text, "; asking again"));
    return;  // the session closes; back-off and dial again
  }
  End(absl::FailedPreconditionError(text));
}

void Worker::OnEnlisted(const Enlisted& path) {
  if (!is_welcome_ || is_enlisted_) return;
  is_enlisted_ = true;
  seams_.loop->Cancel(answer_timer_);
  backoff_.Reset();
  log_.Reason("in session with the coordinator");
  CatchUp c;
  c.path = path;
  catch_up_ = std::move(c);
  catch_up_target_ = std::max(anchor_round_, path.has_snapshot() ? path.snapshot().round() : int64_t{-1});
  for (const CommitRecord& record : path.commits()) {
    commits_.Add(record, std::max(anchor_round_, applying_round_));
    catch_up_target_ = std::max(catch_up_target_, record.key().round());
  }
  if (open_ && open_->key().round() <= catch_up_target_) open_.reset();
  if (pending_) {
    // What another session's hub held or promised may have died with it; what it committed did not.
    pending_->admitted_to.reset();
    pending_->is_delivered = path.pending_is_committed() && path.pending_round() > anchor_round_;
  }
  for (const WorkerMessage& m : std::exchange(unsent_forfeits_, {})) Send(m);
  FetchSnapshot();
  FetchMissing();
  UploadPending();
  Pump();
}

void Worker::OnResync(const Resync& resync) {
  log_.Warning("the anchor here deviates, taking it anew: ", resync.reason());
  CatchUp c;
  c.path = resync.path();
  c.is_resync = true;
  // The frame may be in a commit that is known here and that the snapshot has.
  const CommitRecord* known =
      pending_ ? commits_.FindFrame(options_.site, pending_->header.frame_digest()) : nullptr;
  if (known != nullptr && known->key().round() <= c.path.snapshot().round()) {
    c.path.set_pending_is_committed(true);
    c.path.set_pending_round(known->key().round());
    for (const LeftOut& l : known->left_out()) {
      if (IsPending(known->included(l.included_index()))) c.path.add_pending_left_out(l.tensor());
    }
  }
  commits_.Clear();
  catch_up_ = std::move(c);
  catch_up_target_ = resync.path().snapshot().round();
  for (const CommitRecord& record : resync.path().commits()) {
    commits_.Add(record, resync.path().snapshot().round());
    catch_up_target_ = std::max(catch_up_target_, record.key().round());
  }
  FetchSnapshot();
  FetchMissing();
  Pump();
}

void Worker::OnOutcome(const ContributionOutcome& outcome) {
  if (!pending_ || outcome.frame_digest() != pending_->header.frame_digest()) return;
  if (outcome.is_admitted()) {
    pending_->admitted_to = outcome.key();
    return;
  }
  if (outcome.is_retryable()) {
    pending_->is_delivered = false;
    pending_->must_resend = pending_->is_uploading;
    log_.Reason(absl::StrCat("frame is sent again: ", outcome.reason()));
    return UploadPending();
  }
  DropPending(outcome.reason());
  Pump();
}

void Worker::OnRoundOpened(const RoundOpened& opened) {
  if (opened.opening().key().round() <= anchor_round_) return;
  if (open_ && opened.opening().key().round() < open_->key().round()) return;
  open_ = opened.opening();
  steps_assigned_ = std::max<int64_t>(1, opened.inner_steps());
  may_train_ = true;
  log_.set_round(open_->key().round());
  Pump();
}

void Worker::OnRoundCommitted(const CommitRecord& record) {
  if (open_ && open_->key().round() <= record.key().round()) open_.reset();
  if (anchor_round_ < 0 && !catch_up_) return;  // told of again when enlisting
  const int64_t known = catch_up_ && catch_up_->path.has_snapshot()
                            ? std::max(anchor_round_, catch_up_->path.snapshot().round())
                            : anchor_round_;
  if (commits_.Add(record, known)) FetchMissing();
  // Records are told in order; should one be missing all the same, a new session tells of it.
  const int64_t base = record.base_round();
  if (is_enlisted_ && base > known && base != applying_round_ && commits_.Find(base) == nullptr) {
    return RestartSession(absl::StrCat("nothing was told of round ", base));
  }
  Pump();
}

void Worker::OnRoundAborted(const AbortRecord& record) {
  const RoundRef& key = record.key();
  log_.Reason(absl::StrCat("round ", key.round(), " aborted: ", record.reason()));
  if (open_ && open_->key().round() == key.round()) open_.reset();
  if (pending_ && pending_->admitted_to && pending_->admitted_to->round() == key.round()) {
    DropPending(absl::StrCat("round ", key.round(), " aborted"));
  } else if (pending_ && pending_->header.key().round() <= key.round()) {
    OfferPendingAgain();
  }
  Pump();
}

void Worker::OnEvaluate(const EvaluateAnchor& request) {
  // Asked again while at it.
  if (evaluation_ && evaluation_->round == request.round() && evaluation_->scope == request.scope()) return;
  evaluation_request_ = request;
  Pump();
}

void Worker::Beat() {
  seams_.loop->Cancel(beat_timer_);
  if (!is_open_ || has_ended_) return;
  if (is_welcome_) {
    WorkerMessage m;
    m.mutable_heartbeat()->set_token(
        absl::ToInt64Nanoseconds(seams_.loop->clock().SteadyNow() - absl::UnixEpoch()));
    *m.mutable_heartbeat()->mutable_progress() = Progress();
    Send(m);
    if (is_lease_requested_ && seams_.loop->clock().SteadyNow() - lease_requested_at_ > kAskAgain)
      RequestLease(true);
  }
  const auto& every = run_.membership().heartbeat();
  const absl::Duration interval = absl::Seconds(every.seconds()) + absl::Nanoseconds(every.nanos());
  beat_timer_ = seams_.loop->RunAfter(std::max(interval, absl::Milliseconds(50)), Guard([this] { Beat(); }));
}

void Worker::RequestLease(bool again) {
  if (!is_enlisted_ || (is_lease_requested_ && !again)) return;
  is_lease_requested_ = true;
  lease_requested_at_ = seams_.loop->clock().SteadyNow();
  WorkerMessage m;
  m.mutable_lease_request()->set_number(leases_.next_number());
  m.mutable_lease_request()->set_sequences(sequences_per_step_ * std::max<int64_t>(1, steps_assigned_));
  Send(m);
}

void Worker::Send(const WorkerMessage& message) {
  if (is_open_) seams_.link->Send(message);
}

void Worker::SendForfeited(double square_sum, int64_t steps, const std::vector<LeaseSpan>& trained,
                           const std::string& reason) {
  forfeited_square_sum_ += square_sum;
  forfeited_steps_ += steps;
  WorkerMessage m;
  m.mutable_forfeited()->set_square_sum(square_sum);
  m.mutable_forfeited()->set_steps(steps);
  m.mutable_forfeited()->set_reason(reason);
  m.mutable_forfeited()->set_inner_steps(settled_steps_);
  for (const LeaseSpan& s : trained) {
    TrainedSpan* out = m.mutable_forfeited()->add_trained();
    out->set_lease(s.lease);
    out->set_begin(s.begin);
    out->set_end(s.end);
  }
  if (is_enlisted_) {
    Send(m);
  } else {
    unsent_forfeits_.push_back(m);
  }
  log_.Warning("forfeited ", steps, " inner steps (", absl::StrFormat("%.3g", square_sum),
               " squared): ", reason);
}

SiteProgress Worker::Progress() {
  meter_.Advance(seams_.loop->clock().SteadyNow());
  SiteProgress p;
  p.set_inner_steps(inner_steps_);
  p.set_tokens(tokens_);
  p.set_steps_per_second(steps_per_second_);
  p.set_tokens_per_second(inner_steps_ > 0 ? steps_per_second_ * tokens_ / inner_steps_ : 0);
  p.set_loss(steps_since_encode_ > 0 ? loss_sum_ / steps_since_encode_ : last_loss_);
  p.set_compute_seconds(absl::ToDoubleSeconds(meter_.busy()));
  p.set_wait_seconds(absl::ToDoubleSeconds(meter_.waiting()));
  p.set_anchor_round(anchor_round_);
  p.set_is_frame_pending(pending_.has_value());
  p.set_activity(activity_);
  const TransferCount count = seams_.link->transferred();
  p.set_bytes_out(count.bytes_out);
  p.set_bytes_in(count.bytes_in);
  count.classes.AppendTo(/*only_moved=*/true, p.mutable_traffic());
  p.set_forfeited_square_sum(forfeited_square_sum_);
  p.set_forfeited_steps(forfeited_steps_);
  p.set_round_trip_seconds(round_trip_seconds_);
  p.set_upload_bytes_per_second(upload_rate_);
  return p;
}

}  // namespace isthmus
