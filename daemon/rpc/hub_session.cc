#include "daemon/rpc/hub_session.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/status_conversion.h"

namespace isthmus {
namespace {

// What may wait for one worker. Its control messages of a whole round are a small part of it.
constexpr int64_t kMostQueuedBytes = int64_t{256} << 20;

}  // namespace

void HubSession::Begin() {
  core_->Post([self = shared_from_this()] {
    {
      absl::MutexLock lock(&self->mutex_);
      if (self->is_finished_) return;  // OnDone will not find it: it was never opened
      self->StartSendInitialMetadata();
      self->StartRead(&self->incoming_);
    }
    self->id_ = self->core_->next_session++;
    self->core_->sessions[self->id_] = self;
    self->core_->listener->SessionOpened(self->id_);
  });
}

void HubSession::Send(const CoordinatorMessage& message) {
  absl::MutexLock lock(&mutex_);
  if (is_winding_ || is_finished_) return;
  const int64_t bytes = message.ByteSizeLong();
  core_->traffic.Down(TrafficBytes::CONTROL, bytes);
  queued_bytes_ += bytes;
  if (queued_bytes_ > kMostQueuedBytes) {
    FinishLocked(absl::ResourceExhaustedError("the worker does not take its messages"));
    context_->TryCancel();
    return;
  }
  queue_.push_back(message);
  if (queue_.size() == 1) StartWrite(&queue_.front());
}

void HubSession::Wind(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (is_winding_ || is_finished_) return;
  is_winding_ = true;
  winding_ = why;
  if (queue_.empty()) FinishLocked(why);
}

void HubSession::Abort(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (is_finished_) return;
  context_->TryCancel();
  FinishLocked(why);
}

void HubSession::FinishLocked(const absl::Status& why) {
  if (is_finished_) return;
  is_finished_ = true;
  finished_ = why;
  Finish(ToGrpc(why));
}

void HubSession::OnReadDone(bool ok) {
  if (!ok) {
    // The worker has said all, or is gone; OnDone tells which.
    Wind(absl::OkStatus());
    return;
  }
  auto message = std::make_shared<WorkerMessage>(std::move(incoming_));
  core_->Post([self = shared_from_this(), message] { self->Receive(message); });
}

void HubSession::Receive(const std::shared_ptr<WorkerMessage>& message) {
  {
    absl::MutexLock lock(&mutex_);
    if (!is_finished_) {
      incoming_.Clear();
      StartRead(&incoming_);
    }
  }
  core_->traffic.Up(TrafficBytes::CONTROL, message->ByteSizeLong());
  if (!is_muted_) core_->listener->MessageReceived(id_, std::move(*message));
}

void HubSession::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  queued_bytes_ -= queue_.front().ByteSizeLong();
  queue_.pop_front();
  if (is_finished_) return;
  if (!ok) {
    FinishLocked(absl::UnavailableError("the connection to the worker broke"));
  } else if (!queue_.empty()) {
    StartWrite(&queue_.front());
  } else if (is_winding_) {
    FinishLocked(winding_);
  }
}

void HubSession::OnCancel() {
  absl::MutexLock lock(&mutex_);
  FinishLocked(absl::UnavailableError("the connection to the worker broke"));
}

void HubSession::OnDone() {
  const bool is_broken = context_->IsCancelled();
  absl::Status why;
  {
    absl::MutexLock lock(&mutex_);
    why = finished_;
  }
  if (why.ok() && is_broken) why = absl::UnavailableError("the connection to the worker broke");
  const std::shared_ptr<HubSession> self = shared_from_this();
  core_->Post([self, why] {
    if (self->core_->sessions.erase(self->id_) == 0) return;
    self->core_->listener->SessionClosed(self->id_, why);
  });
  core_->calls.Remove(this);
}

}  // namespace isthmus
