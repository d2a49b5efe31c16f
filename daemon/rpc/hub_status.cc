#include "daemon/rpc/hub_status.h"

#include "daemon/rpc/status_conversion.h"

namespace isthmus {

void HubStatus::Begin() {
  core_->Post([self = shared_from_this()] {
    if (self->is_finished_) return;
    self->is_finished_ = true;
    *self->answer_ = self->core_->listener->StatusRequested(self->request_);
    self->core_->traffic.Down(TrafficBytes::CONTROL, self->answer_->ByteSizeLong());
    self->Finish(grpc::Status::OK);
  });
}

void HubStatus::Abort(const absl::Status& why) {
  if (is_finished_) return;
  is_finished_ = true;
  Finish(ToGrpc(why));
}

void HubStatus::OnDone() {
  const std::shared_ptr<HubStatus> self = shared_from_this();
  core_->calls.Remove(this);
}

void HubWatch::Begin() {
  core_->Post([self = shared_from_this()] {
    if (self->is_finished_) return;
    self->core_->watches[self.get()] = self;
    self->Publish(self->core_->listener->StatusRequested(self->request_));
  });
}

void HubWatch::Publish(const RunStatus& status) {
  if (is_finished_) return;
  if (is_writing_) {
    newest_ = status;
    has_newer_ = true;
    return;
  }
  writing_ = status;
  core_->traffic.Down(TrafficBytes::CONTROL, writing_.ByteSizeLong());
  is_writing_ = true;
  StartWrite(&writing_);
}

void HubWatch::Abort(const absl::Status& why) {
  if (is_finished_) return;
  is_finished_ = true;
  context_->TryCancel();
  Finish(ToGrpc(why));
}

void HubWatch::OnWriteDone(bool ok) {
  core_->Post([self = shared_from_this(), ok] {
    self->is_writing_ = false;
    if (!ok) {
      self->Abort(absl::UnavailableError("the watcher is gone"));
    } else if (self->has_newer_) {
      self->has_newer_ = false;
      self->Publish(self->newest_);
    }
  });
}

void HubWatch::OnCancel() {
  core_->Post([self = shared_from_this()] { self->Abort(absl::CancelledError("the watcher is gone")); });
}

void HubWatch::OnDone() {
  const std::shared_ptr<HubWatch> self = shared_from_this();
  core_->Post([self] { self->core_->watches.erase(self.get()); });
  core_->calls.Remove(this);
}

}  // namespace isthmus
