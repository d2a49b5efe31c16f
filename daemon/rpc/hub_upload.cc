#include "daemon/rpc/hub_upload.h"

#include "absl/strings/str_cat.h"
#include "daemon/rpc/status_conversion.h"

namespace isthmus {

void HubUpload::Begin() {
  core_->Post([self = shared_from_this()] { self->ReadNext(); });
}

void HubUpload::Abort(const absl::Status& why) {
  context_->TryCancel();
  End(why);
}

void HubUpload::ReadNext() {
  if (is_finished_) return;
  incoming_.Clear();
  StartRead(&incoming_);
}

void HubUpload::OnReadDone(bool ok) {
  core_->Post([self = shared_from_this(), ok] {
    if (self->is_finished_) return;
    if (ok) {
      self->Received();
    } else if (!self->is_whole_) {
      self->End(absl::UnavailableError("the upload stopped before its end"));
    }
  });
}

void HubUpload::Received() {
  if (!is_offered_) {
    Offered();
    return;
  }
  if (is_whole_) {
    End(absl::InvalidArgumentError("a piece after the frame's end"));
    return;
  }
  if (static_cast<int64_t>(incoming_.piece().size()) > 4 * kPieceBytes) {
    End(absl::InvalidArgumentError(
        absl::StrCat("a piece of ", incoming_.piece().size(), " bytes; the most is ", 4 * kPieceBytes)));
    return;
  }
  core_->meter->Moved(incoming_.piece().size());
  core_->traffic.Up(TrafficBytes::CONTRIBUTION, incoming_.piece().size());
  const absl::Status taken = core_->frames.Append(header_, incoming_.offset(), incoming_.piece());
  if (!taken.ok()) {
    End(taken);
  } else if (core_->frames.HeldOf(header_) == header_.frame_bytes()) {
    TakeWhole();
  } else {
    ReadNext();
  }
}

void HubUpload::Offered() {
  core_->traffic.Up(TrafficBytes::CONTROL, incoming_.ByteSizeLong());
  header_ = std::move(*incoming_.mutable_header());
  const absl::Status answer = core_->listener->UploadOffered(header_);
  if (is_finished_) return;
  if (!answer.ok()) {
    End(answer);
    return;
  }
  const absl::StatusOr<PartialFrames::Offered> offered = core_->frames.Offer(header_);
  if (!offered.ok()) {
    End(offered.status());
    return;
  }
  is_offered_ = true;
  attempt_ = offered->attempt;
  if (offered->held_bytes == header_.frame_bytes()) {
    TakeWhole();
    return;
  }
  reply_.set_offset(offered->held_bytes);
  is_writing_ = true;
  StartWrite(&reply_);
  ReadNext();
}

void HubUpload::TakeWhole() {
  absl::StatusOr<SharedBytes> frame = core_->frames.Take(header_);
  if (!frame.ok()) {
    End(frame.status());
    return;
  }
  is_whole_ = true;
  core_->listener->UploadReceived(header_, *std::move(frame));
  if (!is_writing_ && !is_finished_) Reply(absl::OkStatus());
}

void HubUpload::Reply(const absl::Status& after) {
  is_finished_ = true;
  reply_.set_offset(header_.frame_bytes());
  reply_.set_is_complete(true);
  StartWriteAndFinish(&reply_, grpc::WriteOptions(), ToGrpc(after));
}

void HubUpload::End(const absl::Status& why) {
  if (is_finished_) return;
  is_finished_ = true;
  Finish(ToGrpc(why));
}

void HubUpload::OnWriteDone(bool ok) {
  core_->Post([self = shared_from_this(), ok] {
    self->is_writing_ = false;
    if (self->is_finished_) return;
    if (!ok) {
      self->End(absl::UnavailableError("the upload's connection broke"));
    } else if (self->is_whole_) {
      self->Reply(absl::OkStatus());
    }
  });
}

void HubUpload::OnCancel() {
  core_->Post([self = shared_from_this()] { self->End(absl::CancelledError("the upload was given up")); });
}

void HubUpload::OnDone() {
  const std::shared_ptr<HubUpload> self = shared_from_this();
  core_->Post([self] {
    if (self->is_offered_) self->core_->frames.Release(self->header_, self->attempt_);
  });
  core_->calls.Remove(this);
}

}  // namespace isthmus
