// Worker: frames going up, updates and snapshots coming down, and what a frame's outcome does.
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/worker/worker.h"

namespace isthmus {
namespace {

// Worth another try with the same frame; anything else means that the hub never counts it.
bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsResourceExhausted(status) || absl::IsDataLoss(status) || absl::IsCancelled(status) ||
         absl::IsFailedPrecondition(status);  // sent under a life that is over: again under the present one
}

BlobName UpdateName(int64_t round) {
  BlobName name;
  name.kind = UPDATE;
  name.round = round;
  return name;
}

}  // namespace

void Worker::UploadPending() {
  if (!pending_ || !is_enlisted_ || pending_->is_uploading || pending_->is_delivered) return;
  pending_->is_uploading = true;
  pending_->must_resend = false;
  pending_->upload_session = session_epoch_;
  pending_->upload_started = seams_.loop->clock().SteadyNow();
  *pending_->header.mutable_life() = life_;  // the present one: matching is by digest
  const Digest digest = pending_->frame.digest;
  seams_.link->Upload(pending_->header, pending_->frame.bytes,
                      pending_->upload_started + options_.transfer_timeout,
                      [this, alive = is_alive_, digest](absl::Status status) {
                        if (*alive) UploadDone(digest, std::move(status));
                      });
}

void Worker::UploadDone(const Digest& frame, absl::Status status) {
  if (has_ended_ || !pending_ || pending_->frame.digest != frame) return;
  pending_->is_uploading = false;
  const absl::Time now = seams_.loop->clock().SteadyNow();
  if (status.ok() || absl::IsAlreadyExists(status)) {
    // Damaged meanwhile; or it went to a hub that may be gone: asking costs a header.
    if (pending_->must_resend || pending_->upload_session != session_epoch_) return UploadPending();
    pending_->is_delivered = true;
    const double seconds = absl::ToDoubleSeconds(now - pending_->upload_started);
    if (status.ok() && seconds > 0) upload_rate_ = pending_->header.frame_bytes() / seconds;
    return;
  }
  if (!IsTransient(status)) {
    DropPending(std::string(status.message()));
    return Pump();
  }
  log_.Reason(absl::StrCat("sending the frame of round ", pending_->header.key().round(),
                           " failed, trying again: ", status.message()));
  if (!is_enlisted_) return;  // enlisting sends it again
  seams_.loop->RunAfter(backoff_.Next(), Guard([this] { UploadPending(); }));
}

void Worker::DropPending(const std::string& why) {
  if (!pending_) return;
  // Told of a commit that has it: what else is said of it is older news.
  if (is_settling_ || (catch_up_ && catch_up_->path.pending_is_committed())) return;
  if (commits_.FindFrame(options_.site, pending_->header.frame_digest()) != nullptr) return;
  const PendingFrame dropped = *std::move(pending_);
  pending_.reset();
  const std::string round = absl::StrCat("contribution to round ", dropped.header.key().round());
  if (dropped.has_right) {
    log_.Reason(absl::StrCat(round, " was not included and stays carried: ", why));
    std::vector<LeaseSpan> spans;
    for (const TrainedSpan& s : dropped.header.trained()) spans.push_back({s.lease(), s.begin(), s.end()});
    if (!dropped.admitted_to) leases_.PutBack(spans);  // else the hub keeps them for this site
    returned_.push_back(dropped.frame.decoded);
    returned_tokens_ += dropped.header.tokens();
  } else {
    ForfeitRightless(dropped, std::vector<bool>(replica_->table().layout().tensors(), true),
                     dropped.steps_at_stake);
  }
  // A copy that is still on its way must not be counted after all.
  if (dropped.is_uploading) RestartSession("a frame on its way is not wanted any more");
}

// A reset took the frame out of the parameters: in the tensors where it does not count it is gone.
void Worker::ForfeitRightless(const PendingFrame& frame, const std::vector<bool>& lost, int64_t steps) {
  OwnFrame own;
  own.frame = frame.frame.decoded.get();
  own.included = lost;
  const double squares = replica_->ForfeitFrame(own);
  if (squares == 0 && steps == 0) return;
  std::vector<LeaseSpan> spans;
  for (const TrainedSpan& s : frame.header.trained()) spans.push_back({s.lease(), s.begin(), s.end()});
  SendForfeited(
      squares, steps, spans,
      absl::StrCat("a reset came before the frame of round ", frame.header.key().round(), " was refused"));
}

// The hub held it, or was told so, and a round went by without it.
void Worker::OfferPendingAgain() {
  if (!pending_->is_delivered) return;
  pending_->is_delivered = false;
  pending_->admitted_to.reset();
  UploadPending();
}

void Worker::SettlePending(const CommitRecord& record) {
  if (!pending_) return;
  for (int i = 0; i < record.included_size(); ++i) {
    if (!IsPending(record.included(i))) continue;
    settled_steps_ = std::max(settled_steps_, pending_->header.inner_steps());
    if (!pending_->has_right) {
      std::vector<bool> lost(replica_->table().layout().tensors(), false);
      for (const LeftOut& l : record.left_out()) {
        if (l.included_index() == i && l.tensor() >= 0 && l.tensor() < static_cast<int>(lost.size()))
          lost[l.tensor()] = true;
      }
      ForfeitRightless(*pending_, lost, 0);
    }
    pending_.reset();
    return;
  }
  // Only the hub's word drops a frame: one it admitted is in the commit, unless it was restarted in between.
  if (pending_->header.key().round() <= record.key().round()) OfferPendingAgain();
}

bool Worker::IsPending(const IncludedContribution& c) const {
  return pending_ && c.life().site() == options_.site && c.frame_digest() == pending_->header.frame_digest();
}

void Worker::RestartSession(const std::string& why) {
  seams_.link->Close();  // transfers end without a word
  if (pending_) pending_->is_uploading = false;
  commits_.Clear();
  SessionClosed(absl::UnavailableError(why));
}

void Worker::FetchMissing() {
  if (!is_enlisted_) return;
  for (int64_t round : commits_.TakeMissing()) {
    seams_.link->Fetch(
        run_id_, life_, UpdateName(round), seams_.loop->clock().SteadyNow() + options_.transfer_timeout,
        [this, alive = is_alive_, round, epoch = session_epoch_](absl::StatusOr<std::string> bytes) {
          if (!*alive || has_ended_) return;
          const CommitRecord* record = commits_.Find(round);
          if (record == nullptr) return;
          if (bytes.ok() && DigestOf(absl::string_view(*bytes)).ToBytes() != record->update_digest()) {
            bytes = absl::DataLossError(absl::StrCat("update of round ", round, " arrived damaged"));
          }
          if (bytes.ok()) {
            commits_.Fetched(round, *std::move(bytes));
            return Pump();
          }
          commits_.FetchFailed(round);
          log_.Reason(absl::StrCat("fetching the update of round ", round, ": ", bytes.status().message()));
          if (absl::IsNotFound(bytes.status()) && is_enlisted_ && epoch == session_epoch_) {
            // Pruned meanwhile: a new session gives a way by snapshot.
            return RestartSession("the updates missing here are pruned");
          }
          if (is_enlisted_) seams_.loop->RunAfter(backoff_.Next(), Guard([this] { FetchMissing(); }));
        });
  }
}

void Worker::FetchSnapshot() {
  if (!is_enlisted_ || !catch_up_ || !catch_up_->path.has_snapshot() || catch_up_->is_fetching ||
      catch_up_->snapshot.has_value()) {
    return;
  }
  catch_up_->is_fetching = true;
  BlobName name;
  name.kind = catch_up_->path.snapshot().packed_bytes() > 0 ? PACKED_SNAPSHOT : SNAPSHOT;
  name.round = catch_up_->path.snapshot().round();
  activity_ = absl::StrCat("catching up: fetching snapshot ", name.round);
  seams_.link->Fetch(run_id_, life_, name, seams_.loop->clock().SteadyNow() + options_.transfer_timeout,
                     [this, alive = is_alive_, round = name.round](absl::StatusOr<std::string> bytes) {
                       if (!*alive || has_ended_ || !catch_up_ || !catch_up_->path.has_snapshot() ||
                           catch_up_->path.snapshot().round() != round || catch_up_->snapshot.has_value()) {
                         return;
                       }
                       catch_up_->is_fetching = false;
                       if (bytes.ok()) {
                         catch_up_->snapshot = *std::move(bytes);
                         return Pump();
                       }
                       log_.Reason(absl::StrCat("fetching snapshot ", round, ": ", bytes.status().message()));
                       if (absl::IsNotFound(bytes.status()) && is_enlisted_) {
                         return RestartSession("the snapshot is pruned");
                       }
                       seams_.loop->RunAfter(backoff_.Next(), Guard([this] { FetchSnapshot(); }));
                     });
}

}  // namespace isthmus
