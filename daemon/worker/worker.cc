// Worker: what the replica does next.
#include "daemon/worker/worker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/store/commit_record.h"
#include "daemon/training/permutation.h"

namespace isthmus {
namespace {

constexpr absl::Duration kFirstBackoff = absl::Milliseconds(250);
// A returned coordinator has everybody back within this; a thousand sites dialling so often weigh nothing.
constexpr absl::Duration kLongestBackoff = absl::Seconds(2);
constexpr absl::Duration kLeaveTimeout = absl::Seconds(3);

}  // namespace

Worker::Worker(Seams seams, WorkerSettings options, ReplicaMaker make_replica,
               std::function<void(absl::Status)> ended)
    : seams_(seams),
      options_(std::move(options)),
      make_replica_(std::move(make_replica)),
      ended_(std::move(ended)),
      log_(options_.site),
      backoff_(kFirstBackoff, kLongestBackoff, options_.seed) {}

Worker::~Worker() { *is_alive_ = false; }

std::function<void()> Worker::Guard(std::function<void()> fn) {
  return [this, alive = is_alive_, fn = std::move(fn)] {
    if (*alive && !has_ended_) fn();
  };
}

void Worker::End(absl::Status status) {
  if (has_ended_) return;
  has_ended_ = true;
  for (TimerId id : {redial_timer_, beat_timer_, pace_timer_, answer_timer_}) seams_.loop->Cancel(id);
  seams_.link->Close();
  ended_(std::move(status));
}

const DecodedFrame* Worker::pending_frame() const {
  return pending_ ? pending_->frame.decoded.get() : nullptr;
}

void Worker::RunTask(const char* kind, std::function<void()> work, std::function<void()> done) {
  is_task_running_ = true;
  meter_.SetBusy(true, seams_.loop->clock().SteadyNow());
  if (!returned_.empty()) {
    work = [this, returned = std::exchange(returned_, {}), work = std::move(work)] {
      for (const auto& frame : returned) replica_->Return(*frame);
      work();
    };
  }
  seams_.compute->Run(kind, std::move(work), Guard([this, done = std::move(done)] {
                        is_task_running_ = false;
                        done();
                        Pump();
                      }));
}

void Worker::Pump() {
  if (has_ended_ || is_task_running_) return;
  if (TryEnlist() || TryLoadSnapshot() || TryApply() || TryEvaluate() || TryEncode() || TryLeave() ||
      TryStep()) {
    return;
  }
  // A step held back by the token limit is the site's own choice, not waiting.
  meter_.SetBusy(pace_timer_ != 0, seams_.loop->clock().SteadyNow());
}

bool Worker::TryApply() {
  MaybeCaughtUp();
  CommitQueue::Ready ready;
  if (anchor_round_ < 0 || (catch_up_ && catch_up_->path.has_snapshot())) return false;
  if (!commits_.TakeNext(anchor_round_, &ready)) return false;
  auto step = std::make_shared<CommittedStep>();
  const CommitRecord& r = ready.record;
  step->stamp = StampOf(r);
  step->outer = OuterStepOf(r);
  step->update = std::move(ready.update);
  std::shared_ptr<const DecodedFrame> own;
  for (int i = 0; pending_ && i < r.included_size(); ++i) {
    if (!IsPending(r.included(i))) continue;
    step->own_index = i;
    is_settling_ = true;
    if (pending_->has_right) own = pending_->frame.decoded;
  }
  step->own = own.get();
  applying_round_ = r.key().round();
  auto digest = std::make_shared<absl::StatusOr<Digest>>(Digest());
  // Once: when the commit is applied again after a resync, it is right.
  const bool flips = options_.flip_anchor_bit_after_round > 0 && !is_bit_flipped_ &&
                     r.key().round() == options_.flip_anchor_bit_after_round;
  is_bit_flipped_ |= flips;
  RunTask(
      "apply",
      [this, step, own, digest, flips] {
        *digest = replica_->Apply(*step);
        if (flips) replica_->FlipAnchorBit(12345);
      },
      [this, record = r, digest] { ApplyDone(record, *digest); });
  return true;
}

void Worker::ApplyDone(const CommitRecord& record, absl::StatusOr<Digest> digest) {
  const int64_t round = record.key().round();
  applying_round_ = -1;
  is_settling_ = false;
  if (!digest.ok()) {
    // The bytes are what was committed (their digest was checked), so this cannot be mended by asking again.
    return End(absl::InternalError(absl::StrCat("applying round ", round, ": ", digest.status().message())));
  }
  SettlePending(record);
  anchor_round_ = round;
  commits_.DropUpTo(round);  // a new session may have told of it again while it was being applied
  anchor_digest_ = *digest;
  schedule_step_ = record.schedule_step();
  steps_since_commit_ = 0;
  if (record.is_last()) {
    may_train_ = false;  // nothing more would ever be taken
    activity_ = "waiting for the run to end";
    Beat();  // the last figures, before the word that may end the run
  }
  if (digest->ToBytes() != record.state_digest()) {
    log_.Error("after round ", round, " the anchor here has digest ", digest->ToHex(),
               ", not the committed one");
  }
  WorkerMessage m;
  m.mutable_anchor_applied()->set_round(round);
  m.mutable_anchor_applied()->set_state_digest(digest->ToBytes());
  Send(m);
  MaybeCaughtUp();
}

bool Worker::TryEvaluate() {
  if (evaluation_request_ && !evaluation_) {
    const EvaluateAnchor request = *evaluation_request_;
    if (anchor_round_ < request.round()) return false;
    evaluation_request_.reset();
    evaluation_.emplace();
    evaluation_->scope = request.scope();
    evaluation_->round = request.round();
    evaluation_->is_void = anchor_round_ > request.round();
  }
  if (!evaluation_) return false;
  EvaluationRun& e = *evaluation_;
  if (e.is_void || (!e.batches.empty() && e.next == e.batches.size())) {
    WorkerMessage m;
    m.mutable_evaluation_done()->set_round(e.round);
    m.mutable_evaluation_done()->set_scope(e.scope);
    m.mutable_evaluation_done()->set_loss(e.tokens > 0 ? e.loss_sum / e.tokens : 0);
    m.mutable_evaluation_done()->set_tokens(e.tokens);
    Send(m);
    evaluation_.reset();
    return false;
  }
  activity_ = absl::StrCat("evaluating the anchor of round ", e.round);
  auto loss = std::make_shared<absl::StatusOr<double>>(0.0);
  RunTask(
      "evaluate",
      [this, &e, loss] {
        if (e.batches.empty()) {
          e.anchor.assign(replica_->anchor().begin(), replica_->anchor().end());
          e.batches = replica_->data().HeldOutBatches(e.scope == WHOLE);
        }
        if (e.next < e.batches.size()) *loss = replica_->trainer().Evaluate(e.anchor, e.batches[e.next]);
      },
      [this, &e, loss] {
        if (!loss->ok()) return End(loss->status());
        if (e.next >= e.batches.size()) {
          e.is_void = true;
          return;
        }
        const int64_t tokens = e.batches[e.next].sequences * e.batches[e.next].length;
        e.loss_sum += **loss * tokens;
        e.tokens += tokens;
        ++e.next;
      });
  return true;
}

int64_t Worker::StepsDue() const { return leaving_.empty() ? steps_assigned_ : 1; }

bool Worker::CanContribute() const {
  return is_enlisted_ && open_ && !pending_ && anchor_round_ >= 0 && catch_up_target_ < 0 &&
         open_->key().round() > last_contributed_ && steps_since_encode_ >= StepsDue();
}

bool Worker::TryEncode() {
  if (!CanContribute()) return false;
  struct Result {
    absl::StatusOr<EncodedFrame> frame = absl::InternalError("not encoded");
    double decay_forfeited = 0;
  };
  auto result = std::make_shared<Result>();
  activity_ = "encoding";
  is_encoding_ = true;
  RunTask(
      "encode",
      [this, result, spec = open_->codec(), decay = run_.exchange().carry_decay()] {
        absl::StatusOr<std::unique_ptr<Codec>> codec = ParseCodecSpec(spec);
        if (!codec.ok()) {
          result->frame =
              absl::InternalError(absl::StrCat("codec spec ", spec, ": ", codec.status().message()));
          return;
        }
        result->frame = replica_->Encode(**codec, decay, &result->decay_forfeited);
      },
      [this, result, opening = *open_] {
        EncodeDone(std::move(result->frame), result->decay_forfeited, opening);
      });
  return true;
}

void Worker::EncodeDone(absl::StatusOr<EncodedFrame> frame, double decay_forfeited,
                        const OpeningRecord& opening) {
  is_encoding_ = false;
  if (absl::IsInvalidArgument(frame.status())) {
    return ResetAfterFault(
        absl::StrCat("encoding for round ", opening.key().round(), ": ", frame.status().message()));
  }
  if (!frame.ok()) return End(frame.status());
  last_contributed_ = opening.key().round();
  if (decay_forfeited > 0) {
    forfeited_square_sum_ += decay_forfeited;
    decayed_square_sum_ += decay_forfeited;
  }
  PendingFrame p;
  p.frame = *std::move(frame);
  ContributionHeader& h = p.header;
  h.set_run_id(run_id_);
  *h.mutable_key() = opening.key();
  *h.mutable_life() = life_;
  h.set_base_round(anchor_round_);
  h.set_base_digest(p.frame.base_digest.ToBytes());
  h.set_frame_digest(p.frame.digest.ToBytes());
  h.set_frame_bytes(p.frame.bytes->size());
  // With those of frames that came back: what they held is in this one.
  h.set_tokens(tokens_since_encode_ + std::exchange(returned_tokens_, 0));
  h.set_steps(inner_steps_ - settled_steps_);
  last_loss_ = steps_since_encode_ > 0 ? loss_sum_ / steps_since_encode_ : 0;
  h.set_loss(last_loss_);
  h.set_inner_steps(inner_steps_);
  h.set_decayed_square_sum(decayed_square_sum_);
  h.set_tokens_per_step(sequences_per_step_ * run_.model().context());
  for (const LeaseSpan& s : leases_.TakeTrained()) {
    TrainedSpan* out = h.add_trained();
    out->set_lease(s.lease);
    out->set_begin(s.begin);
    out->set_end(s.end);
  }
  steps_since_encode_ = tokens_since_encode_ = 0;
  loss_sum_ = 0;
  pending_ = std::move(p);
  UploadPending();
}

void Worker::ResetAfterFault(const std::string& why) {
  log_.Error(why, "; parameters go back to the anchor");
  std::shared_ptr<const DecodedFrame> pending =
      pending_ && pending_->has_right ? pending_->frame.decoded : nullptr;
  if (pending_) pending_->has_right = false;
  auto forfeited = std::make_shared<double>(0);
  RunTask(
      "reset", [this, pending, forfeited] { *forfeited = replica_->Reset(pending.get()); },
      [this, forfeited, why] { SendForfeited(*forfeited, ForfeitSteps(), leases_.TakeTrained(), why); });
}

bool Worker::TryLeave() {
  if (leaving_.empty() || pending_ || is_leaving_said_) return is_leaving_said_;
  if (!is_enlisted_ || anchor_round_ < 0) {
    End(absl::OkStatus());
    return true;
  }
  is_leaving_said_ = true;
  auto carried = std::make_shared<double>(0);
  RunTask(
      "forfeit", [this, carried] { *carried = replica_->CarriedSquareSum(nullptr); },
      [this, carried] {
        SendForfeited(*carried, ForfeitSteps(), leases_.TakeTrained(),
                      absl::StrCat("the site left: ", leaving_));
        WorkerMessage m;
        m.mutable_leaving()->set_reason(leaving_);
        Send(m);
        seams_.loop->RunAfter(kLeaveTimeout, Guard([this] { End(absl::OkStatus()); }));
      });
  return true;
}

void Worker::Leave(const std::string& reason) {
  if (has_ended_) return;
  if (!leaving_.empty()) return End(absl::OkStatus());  // asked twice: at once
  leaving_ = reason.empty() ? "asked to" : reason;
  log_.Info("leaving: ", leaving_);
  if (!is_open_) EndUnlessInSession();
  Pump();
}

void Worker::EndUnlessInSession() {
  seams_.loop->RunAfter(kLeaveTimeout, Guard([this] {
                          if (is_open_) return;
                          log_.Warning("left without a word: the coordinator is away");
                          End(absl::OkStatus());
                        }));
}

double Worker::RateNow() const {
  StepPosition p;
  p.schedule_step = schedule_step_;
  p.is_frame_pending = pending_.has_value();
  p.inner_steps_per_round = std::max<int64_t>(1, run_.rounds().inner_steps_per_round());
  p.assigned_steps = steps_assigned_;
  p.steps_done = pending_ ? steps_since_encode_ : std::min(steps_since_encode_, steps_since_commit_);
  return LearningRate(schedule_, ScheduleStepOf(p));
}

bool Worker::MayStep() {
  if (!may_train_ || anchor_round_ < 0 || !leaving_.empty() ||
      (catch_up_ && catch_up_->path.has_snapshot())) {
    return false;
  }
  const bool is_due = steps_since_encode_ >= steps_assigned_;
  if (open_ && open_->is_last() && (is_due || last_contributed_ >= open_->key().round())) {
    activity_ = "waiting for the last round to close";
    return false;
  }
  if (!run_.rounds().overlap() && (pending_ || is_due)) {
    activity_ = "waiting for the round to close (overlap is off)";
    return false;
  }
  return true;
}

bool Worker::TryStep() {
  if (!MayStep()) return false;
  const absl::Time now = seams_.loop->clock().SteadyNow();
  if (leases_.left() < sequences_per_step_ * (1 + steps_assigned_ / 2)) RequestLease(false);
  if (now < next_step_at_) {
    if (pace_timer_ == 0) {
      pace_timer_ = seams_.loop->RunAt(next_step_at_, Guard([this] {
                                         pace_timer_ = 0;
                                         Pump();
                                       }));
    }
    return false;
  }
  const std::vector<LeasePosition> positions = leases_.Take(sequences_per_step_);
  if (positions.empty()) {
    activity_ = "waiting for a data lease";
    return false;
  }
  activity_ = "training";
  std::vector<int64_t> sequences;
  for (const LeasePosition& p : positions) {
    const PassPermutation order(replica_->data().training_sequences(), run_.seed(), p.pass);
    sequences.push_back(order.At(p.position));
  }
  auto result = std::make_shared<absl::StatusOr<StepResult>>(absl::InternalError("no step"));
  RunTask(
      "step",
      [this, sequences = std::move(sequences), result, rate = RateNow()] {
        *result = replica_->Step(sequences, rate);
      },
      [this, result, now] { StepDone(*result, now); });
  return true;
}

void Worker::StepDone(const absl::StatusOr<StepResult>& result, absl::Time began) {
  if (absl::IsDataLoss(result.status())) return ResetAfterFault(std::string(result.status().message()));
  if (!result.ok()) return End(result.status());
  ++inner_steps_;
  ++steps_since_encode_;
  ++steps_since_commit_;
  tokens_ += result->tokens;
  tokens_since_encode_ += result->tokens;
  loss_sum_ += result->loss;
  absl::Duration took = seams_.loop->clock().SteadyNow() - began;
  if (options_.max_tokens_per_second > 0) {
    took = std::max(took, absl::Seconds(result->tokens / options_.max_tokens_per_second));
    next_step_at_ = began + took;
  }
  const double speed = 1 / std::max(1e-9, absl::ToDoubleSeconds(took));
  // A harmonic moving average: the mean of times, so that one slow step counts for what it took.
  steps_per_second_ = steps_per_second_ == 0 ? speed : 1 / (0.9 / steps_per_second_ + 0.1 / speed);
}

}  // namespace isthmus
