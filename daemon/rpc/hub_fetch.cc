#include "daemon/rpc/hub_fetch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/status_conversion.h"

namespace isthmus {

void HubFetch::Begin() {
  core_->Post([self = shared_from_this()] { self->Open(); });
}

void HubFetch::Abort(const absl::Status& why) {
  context_->TryCancel();
  End(why);
}

void HubFetch::Open() {
  if (is_finished_) return;
  core_->traffic.Up(TrafficBytes::CONTROL, request_.ByteSizeLong());
  absl::StatusOr<std::shared_ptr<const BlobSource>> source = core_->listener->FetchRequested(request_);
  if (is_finished_) return;
  if (!source.ok()) {
    End(source.status());
    return;
  }
  source_ = *std::move(source);
  if (request_.offset() < 0 || request_.offset() > source_->size()) {
    End(absl::InvalidArgumentError(
        absl::StrCat("fetch from offset ", request_.offset(), " of a blob of ", source_->size(), " bytes")));
    return;
  }
  if (TrafficOf(request_.kind()) != TrafficBytes::SNAPSHOT) {
    StartSending();
  } else if (core_->snapshots_under_way < core_->most_snapshots_under_way) {
    ++core_->snapshots_under_way;
    has_turn_ = true;
    StartSending();
  } else {
    core_->snapshots_waiting.push_back([self = shared_from_this()] {
      self->has_turn_ = true;
      if (self->is_finished_) {
        self->GiveUpTurn();
      } else {
        self->StartSending();
      }
    });
  }
}

// Hands the turn to whoever waits longest.
void HubFetch::GiveUpTurn() {
  if (!has_turn_) return;
  has_turn_ = false;
  if (core_->snapshots_waiting.empty()) {
    --core_->snapshots_under_way;
    return;
  }
  const std::function<void()> next = std::move(core_->snapshots_waiting.front());
  core_->snapshots_waiting.pop_front();
  core_->Post(next);
}

void HubFetch::StartSending() {
  next_offset_ = request_.offset();
  SendPiece(ReadAt(next_offset_));
}

absl::StatusOr<std::string> HubFetch::ReadAt(int64_t offset) const {
  return source_->Read(offset, std::min(kPieceBytes, source_->size() - offset));
}

void HubFetch::SendPiece(absl::StatusOr<std::string> piece) {
  if (is_finished_) return;
  if (!piece.ok()) {
    End(piece.status());
    return;
  }
  if (piece->empty() && next_offset_ < source_->size()) {
    End(absl::DataLossError(
        absl::StrCat("the blob ends at ", next_offset_, " of ", source_->size(), " bytes")));
    return;
  }
  reply_.set_total_bytes(source_->size());
  reply_.set_offset(next_offset_);
  const int64_t bytes = piece->size();
  reply_.set_piece(*std::move(piece));
  core_->pacer.WhenDue(bytes, [self = shared_from_this(), alive = core_->is_alive, bytes] {
    if (!*alive || self->is_finished_) return;
    self->core_->meter->Moved(bytes);
    self->core_->traffic.Down(TrafficOf(self->request_.kind()), bytes);
    self->next_offset_ += bytes;
    if (self->next_offset_ == self->source_->size()) {
      self->is_finished_ = true;
      self->StartWriteAndFinish(&self->reply_, grpc::WriteOptions(), grpc::Status::OK);
    } else {
      self->StartWrite(&self->reply_);
    }
  });
}

void HubFetch::OnWriteDone(bool ok) {
  // The loop leaves next_offset_ and the source alone until this post.
  auto next = std::make_shared<absl::StatusOr<std::string>>(
      ok ? ReadAt(next_offset_) : absl::UnavailableError("the fetch's connection broke"));
  core_->Post([self = shared_from_this(), next] { self->SendPiece(std::move(*next)); });
}

void HubFetch::End(const absl::Status& why) {
  if (is_finished_) return;
  is_finished_ = true;
  Finish(ToGrpc(why));
}

void HubFetch::OnCancel() {
  core_->Post([self = shared_from_this()] { self->End(absl::CancelledError("the fetch was given up")); });
}

void HubFetch::OnDone() {
  const std::shared_ptr<HubFetch> self = shared_from_this();
  core_->Post([self] { self->GiveUpTurn(); });
  core_->calls.Remove(this);
}

}  // namespace isthmus
