// Worker: building the model, enlisting, and the way to the current anchor.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/store/commit_record.h"
#include "daemon/store/packed_snapshot.h"
#include "daemon/worker/worker.h"

namespace isthmus {

bool Worker::TryEnlist() {
  if (!is_welcome_ || is_enlisted_ || enlist_epoch_ == session_epoch_) return false;
  if (replica_ == nullptr) {
    activity_ = "opening the data and building the model";
    auto parts = std::make_shared<absl::StatusOr<Replica::Parts>>(absl::InternalError("not made"));
    RunTask(
        "open", [this, parts, run = run_] { *parts = make_replica_(run); },
        [this, parts] {
          if (!parts->ok()) return End(parts->status());
          const bool is_separate = run_.exchange().error_feedback() == ExchangeConfig::SEPARATE;
          replica_ = std::make_unique<Replica>(
              *std::move(*parts), seams_.ops, is_separate ? FeedbackForm::kSeparate : FeedbackForm::kCarried);
        });
    return true;
  }
  enlist_epoch_ = session_epoch_;
  struct Result {
    absl::Status data;
    Digest anchor;
  };
  auto result = std::make_shared<Result>();
  RunTask(
      "digest",
      [this, result] {
        result->data = replica_->data().CheckUnchanged();
        if (!replica_->anchor().empty()) result->anchor = replica_->AnchorDigest();
      },
      [this, result] {
        if (!result->data.ok()) return End(result->data);
        SendEnlist(result->anchor);
      });
  return true;
}

void Worker::SendEnlist(const Digest& digest) {
  if (!is_welcome_ || enlist_epoch_ != session_epoch_) return;
  WorkerMessage m;
  Enlist* e = m.mutable_enlist();
  e->set_layout_digest(replica_->table().layout().digest());
  e->set_vocabulary(run_.model().vocabulary());
  e->set_data_digest(replica_->data().digest().ToBytes());
  e->set_data_sequences(replica_->data().training_sequences());
  e->set_anchor_round(anchor_round_);
  if (anchor_round_ >= 0) e->set_anchor_digest(digest.ToBytes());
  if (pending_) e->set_pending_frame_digest(pending_->header.frame_digest());
  e->set_tokens_per_step(sequences_per_step_ * run_.model().context());
  Send(m);
  AwaitAnswer("its enlisting");
}

bool Worker::TryLoadSnapshot() {
  if (!catch_up_ || !catch_up_->snapshot.has_value()) return false;
  auto path = std::make_shared<CatchUp>(std::move(*catch_up_));
  catch_up_.reset();
  OwnFrame own;
  const bool has_right = pending_ && pending_->has_right;
  const bool is_settled =
      path->path.pending_is_committed() && path->path.pending_round() <= path->path.snapshot().round();
  // A reset takes the right of a frame whose outcome is open; it stands for itself from here on.
  const std::shared_ptr<const DecodedFrame> pending =
      has_right && (is_settled || path->is_resync) ? pending_->frame.decoded : nullptr;
  own.frame = pending.get();
  if (is_settled) own.included = IncludedTensors(path->path);
  is_settling_ = is_settled && pending_.has_value();
  if (path->is_resync && pending_) pending_->has_right = false;
  activity_ = absl::StrCat("catching up: loading snapshot ", path->path.snapshot().round());
  auto forfeited = std::make_shared<absl::StatusOr<double>>(0.0);
  RunTask(
      "load",
      [this, path, own, pending, forfeited, is_fresh = anchor_round_ < 0] {
        *forfeited = LoadSnapshot(*path, own, is_fresh);
      },
      [this, path, forfeited, has_right] { SnapshotLoaded(*forfeited, std::move(*path), has_right); });
  return true;
}

// DATA_LOSS: the bytes are not the snapshot that was promised; nothing has changed.
absl::StatusOr<double> Worker::LoadSnapshot(const CatchUp& path, const OwnFrame& own, bool is_fresh) {
  const SnapshotInfo& promised = path.path.snapshot();
  absl::StatusOr<std::string> unpacked = std::string();
  if (promised.packed_bytes() > 0) {
    unpacked = UnpackSnapshot(replica_->table(), promised, *path.snapshot);
    if (!unpacked.ok()) {
      return absl::DataLossError(absl::StrCat("snapshot of round ", promised.round(),
                                              " arrived damaged: ", unpacked.status().message()));
    }
  }
  absl::StatusOr<Snapshot> snapshot =
      DecodeSnapshot(replica_->table(), promised.packed_bytes() > 0 ? *unpacked : *path.snapshot);
  if (!snapshot.ok() || snapshot->info.state_digest() != path.path.snapshot().state_digest()) {
    return absl::DataLossError(absl::StrCat("snapshot of round ", path.path.snapshot().round(),
                                            " arrived damaged: ", snapshot.status().message()));
  }
  const StateStamp stamp = StampOf(snapshot->info);
  std::vector<float>& anchor = snapshot->values.anchor;
  std::vector<float>& momentum = snapshot->values.momentum;
  if (path.is_resync) return replica_->Resync(stamp, std::move(anchor), std::move(momentum), own);
  const absl::Status status = is_fresh ? replica_->Begin(stamp, std::move(anchor), std::move(momentum))
                                       : replica_->MoveTo(stamp, std::move(anchor), std::move(momentum), own);
  if (!status.ok()) return status;
  return 0.0;
}

void Worker::SnapshotLoaded(const absl::StatusOr<double>& forfeited, CatchUp path, bool had_right) {
  is_settling_ = false;
  if (absl::IsDataLoss(forfeited.status())) {
    log_.Reason(std::string(forfeited.status().message()));
    if (pending_) pending_->has_right = had_right;
    if (catch_up_) return;  // a newer way is known
    if (!is_enlisted_ || ++bad_snapshots_ > 1) return RestartSession("a snapshot arrived damaged twice");
    path.snapshot.reset();
    catch_up_ = std::move(path);
    return FetchSnapshot();
  }
  if (!forfeited.ok()) return End(forfeited.status());
  bad_snapshots_ = 0;
  const SnapshotInfo& info = path.path.snapshot();
  anchor_round_ = info.round();
  anchor_digest_ = replica_->AnchorDigest();
  schedule_step_ = info.schedule_step();
  steps_since_commit_ = 0;
  commits_.DropUpTo(anchor_round_);
  if (pending_ && path.path.pending_is_committed() && path.path.pending_round() <= anchor_round_) {
    settled_steps_ = std::max(settled_steps_, pending_->header.inner_steps());
    if (!had_right) {
      std::vector<bool> lost = IncludedTensors(path.path);
      lost.flip();
      ForfeitRightless(*pending_, lost, 0);
    }
    pending_.reset();
  }
  if (path.is_resync) {
    SendForfeited(*forfeited, ForfeitSteps(), leases_.TakeTrained(),
                  "the anchor deviated and was taken anew");
  }
  log_.Info("anchor is at round ", anchor_round_, ", digest ", anchor_digest_.ToHex());
  MaybeCaughtUp();
}

std::vector<bool> Worker::IncludedTensors(const Enlisted& path) const {
  std::vector<bool> included(replica_->table().layout().tensors(), true);
  for (int t : path.pending_left_out()) {
    if (t >= 0 && t < static_cast<int>(included.size())) included[t] = false;
  }
  return included;
}

// What is trained and neither committed nor in a frame on its way is gone; from here on it is accounted for.
int64_t Worker::ForfeitSteps() {
  const int64_t spoken_for =
      pending_ ? std::max(settled_steps_, pending_->header.inner_steps()) : settled_steps_;
  if (pending_) pending_->steps_at_stake = std::max<int64_t>(0, spoken_for - settled_steps_);
  settled_steps_ = inner_steps_;
  steps_since_encode_ = tokens_since_encode_ = returned_tokens_ = 0;
  loss_sum_ = 0;
  return inner_steps_ - spoken_for;
}

void Worker::MaybeCaughtUp() {
  if (!is_enlisted_ || catch_up_target_ < 0 || anchor_round_ < catch_up_target_) return;
  if (catch_up_ && catch_up_->path.has_snapshot()) return;  // still on its way
  catch_up_.reset();
  catch_up_target_ = -1;
  WorkerMessage m;
  m.mutable_caught_up()->set_round(anchor_round_);
  m.mutable_caught_up()->set_state_digest(anchor_digest_.ToBytes());
  Send(m);
  activity_ = may_train_ ? "training" : "waiting for a round to open";
}

}  // namespace isthmus
