#include "daemon/rpc/link_upload.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "daemon/exchange/partial_frames.h"
#include "daemon/rpc/status_conversion.h"

namespace isthmus {

// One attempt's stream. The mutex guards whether it is over, which gRPC's threads and the loop both reach.
class UploadCall : public Call,
                   public grpc::ClientBidiReactor<UploadRequest, UploadReply>,
                   public std::enable_shared_from_this<UploadCall> {
 public:
  // All on the loop.
  struct Events {
    std::function<void(UploadReply)> replied;
    std::function<void()> written;
    std::function<void(absl::Status)> ended;
  };

  UploadCall(std::shared_ptr<LinkCore> core, Events events)
      : core_(std::move(core)), events_(std::move(events)) {}

  void Begin(Isthmus::Stub* stub, const ContributionHeader& header, absl::Duration left) {
    context_.set_deadline(GrpcDeadline(left));
    stub->async()->Upload(&context_, this);
    *outgoing_.mutable_header() = header;
    AddHold();  // for the writes, which come from outside gRPC's callbacks
    StartRead(&incoming_);
    StartWrite(&outgoing_);
    StartCall();
  }

  // When the last write is done.
  void Write(int64_t offset, std::string piece) {
    absl::MutexLock lock(&mutex_);
    if (is_over_) return;
    outgoing_.Clear();
    outgoing_.set_offset(offset);
    outgoing_.set_piece(std::move(piece));
    StartWrite(&outgoing_);
  }

  void Abort(const absl::Status&) override {
    context_.TryCancel();
    GiveBackHold();
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      GiveBackHold();
      return;
    }
    core_->loop->Post([self = shared_from_this(), reply = incoming_] { self->events_.replied(reply); });
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    if (ok) core_->loop->Post([self = shared_from_this()] { self->events_.written(); });
  }

  void OnDone(const grpc::Status& status) override {
    // The call's last share goes to the loop, and with it, maybe, the core.
    const std::shared_ptr<LinkCore> core = core_;
    core->calls.Remove(this, [&](std::shared_ptr<Call> last) {
      core->loop->Post([this, last = std::move(last), why = FromGrpc(status)] { events_.ended(why); });
    });
  }

 private:
  void GiveBackHold() {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(is_over_, true)) return;
    RemoveHold();
  }

  const std::shared_ptr<LinkCore> core_;  // shared by the link and its calls
  const Events events_;
  grpc::ClientContext context_;
  UploadRequest outgoing_;  // gRPC's between StartWrite and OnWriteDone
  UploadReply incoming_;    // gRPC's between StartRead and OnReadDone
  absl::Mutex mutex_;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;  // the hold is given back: start nothing more
};

LinkUpload::LinkUpload(std::shared_ptr<LinkCore> core, Isthmus::Stub* stub, Pacer* pacer,
                       const ContributionHeader& header, SharedBytes frame, absl::Time deadline,
                       std::function<void(absl::Status)> finish)
    : Transfer(core->loop, deadline),
      core_(std::move(core)),
      stub_(stub),
      pacer_(pacer),
      header_(header),
      frame_(std::move(frame)),
      finish_(std::move(finish)) {}

LinkUpload::~LinkUpload() { Abandon(); }

void LinkUpload::Abandon() {
  if (call_ != nullptr) call_->Abort(absl::CancelledError("given up"));
  call_ = nullptr;
}

std::string LinkUpload::Describe() const {
  return absl::StrCat("upload of site '", header_.life().site(), "' for round ", header_.key().round());
}

void LinkUpload::BeginAttempt() {
  sent_bytes_ = -1;
  is_writing_ = true;  // the header
  UploadCall::Events events;
  events.replied = InAttempt([this](const UploadReply& reply) { Replied(reply); });
  events.written = InAttempt([this] {
    is_writing_ = false;
    SendNext();
  });
  events.ended = InAttempt([this](const absl::Status& why) { Ended(why); });
  call_ = std::make_shared<UploadCall>(core_, std::move(events));
  core_->calls.Add(call_);
  core_->traffic.Up(TrafficBytes::CONTROL, header_.ByteSizeLong());
  call_->Begin(stub_, header_, deadline() - loop()->clock().SteadyNow());
}

void LinkUpload::Replied(const UploadReply& reply) {
  if (reply.is_complete()) {
    Finish(absl::OkStatus());
    return;
  }
  ProgressMade();
  const int64_t frame_bytes = frame_->size();
  if (header_.frame_bytes() != frame_bytes || reply.offset() < 0 || reply.offset() > frame_bytes) {
    Finish(absl::InvalidArgumentError(absl::StrCat(Describe(), ": the frame has ", frame_bytes,
                                                   " bytes, its header says ", header_.frame_bytes(),
                                                   ", the hub holds ", reply.offset())));
    return;
  }
  if (sent_bytes_ >= 0) return;
  sent_bytes_ = reply.offset();
  SendNext();
}

void LinkUpload::SendNext() {
  const int64_t frame_bytes = frame_->size();
  if (is_writing_ || sent_bytes_ < 0 || sent_bytes_ >= frame_bytes) return;
  is_writing_ = true;
  const int64_t offset = sent_bytes_;
  const int64_t bytes = std::min(pacer_->piece_bytes(), frame_bytes - offset);
  sent_bytes_ += bytes;
  core_->meter->Moved(bytes);
  pacer_->WhenDue(bytes, InAttempt([this, offset, bytes] {
                    core_->traffic.Up(TrafficBytes::CONTRIBUTION, bytes);
                    call_->Write(offset, frame_->substr(offset, bytes));
                  }));
}

void LinkUpload::Ended(const absl::Status& why) {
  // Damaged on the way once: all of it again. Twice: the frame itself does not match its header.
  const bool is_again = absl::IsDataLoss(why) && ++data_losses_ < 2;
  if (why.ok()) {
    Break(absl::UnavailableError("the hub ended the upload before it was complete"));
    // NOT_FOUND: what was held of it had to make room.
  } else if (is_again || IsWorthRetrying(why) || absl::IsNotFound(why)) {
    Break(why);
  } else {
    Finish(why);
  }
}

void LinkUpload::Finish(const absl::Status& status) {
  EndAttempts();
  // A call that is complete ends by itself, and in order; others are cut off with this object.
  if (status.ok()) call_ = nullptr;
  const auto finish = std::move(finish_);
  finish(status);  // destroys this
}

}  // namespace isthmus
