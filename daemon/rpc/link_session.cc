#include "daemon/rpc/link_session.h"

#include "daemon/rpc/status_conversion.h"

namespace isthmus {

void LinkSession::Begin() {
  stub_->async()->Session(&context_, this);
  AddHold();  // for the writes, which come from outside gRPC's callbacks
  StartRead(&incoming_);
  StartCall();
}

void LinkSession::Send(const WorkerMessage& message) {
  absl::MutexLock lock(&mutex_);
  if (is_over_ || is_winding_) return;
  queue_.push_back(message);
  if (queue_.size() == 1) StartWrite(&queue_.front());
}

void LinkSession::Wind(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (is_over_ || is_winding_) return;
  is_winding_ = true;
  if (!is_open_) {
    context_.TryCancel();
  } else if (queue_.empty()) {
    StartWritesDone();
  }
}

void LinkSession::Abort(const absl::Status&) {
  {
    absl::MutexLock lock(&mutex_);
    is_winding_ = true;
  }
  context_.TryCancel();
}

void LinkSession::OnReadInitialMetadataDone(bool ok) {
  if (!ok) return;
  {
    absl::MutexLock lock(&mutex_);
    is_open_ = true;
  }
  core_->loop->Post([self = shared_from_this()] { self->events_.opened(); });
}

void LinkSession::OnReadDone(bool ok) {
  if (!ok) {
    absl::MutexLock lock(&mutex_);
    is_over_ = true;
    RemoveHold();
    return;
  }
  auto message = std::make_shared<CoordinatorMessage>(std::move(incoming_));
  core_->loop->Post([self = shared_from_this(), message] { self->events_.received(std::move(*message)); });
  incoming_.Clear();
  StartRead(&incoming_);
}

void LinkSession::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  queue_.pop_front();
  if (is_over_) return;
  if (!ok) {
    queue_.clear();
  } else if (!queue_.empty()) {
    StartWrite(&queue_.front());
  } else if (is_winding_) {
    StartWritesDone();
  }
}

void LinkSession::OnDone(const grpc::Status& status) {
  // The call's last share goes to the loop, and with it, maybe, the core.
  const std::shared_ptr<LinkCore> core = core_;
  core->calls.Remove(this, [&](std::shared_ptr<Call> last) {
    core->loop->Post([this, last = std::move(last), why = FromGrpc(status)] { events_.ended(why); });
  });
}

}  // namespace isthmus
