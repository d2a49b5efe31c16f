#include "daemon/rpc/link_fetch.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "daemon/rpc/status_conversion.h"

namespace isthmus {

// One attempt's stream: the next piece is read when the loop has taken the last. The mutex guards whether it
// is over, which gRPC's threads and the loop both reach.
class FetchCall : public Call,
                  public grpc::ClientReadReactor<FetchReply>,
                  public std::enable_shared_from_this<FetchCall> {
 public:
  // All on the loop.
  struct Events {
    std::function<void(const FetchReply&)> piece;
    std::function<void(absl::Status)> ended;
  };

  FetchCall(std::shared_ptr<LinkCore> core, Events events)
      : core_(std::move(core)), events_(std::move(events)) {}

  void Begin(Isthmus::Stub* stub, const FetchRequest& request, absl::Duration left) {
    context_.set_deadline(GrpcDeadline(left));
    request_ = request;
    stub->async()->Fetch(&context_, &request_, this);
    AddHold();  // for the reads, which come from outside gRPC's callbacks
    StartRead(&incoming_);
    StartCall();
  }

  void ReadNext() {
    absl::MutexLock lock(&mutex_);
    if (!is_over_) StartRead(&incoming_);
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
    auto reply = std::make_shared<FetchReply>(std::move(incoming_));
    core_->loop->Post([self = shared_from_this(), reply] {
      self->events_.piece(*reply);
      self->ReadNext();
    });
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
  FetchRequest request_;
  FetchReply incoming_;  // gRPC's between StartRead and OnReadDone
  absl::Mutex mutex_;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;  // the hold is given back: start nothing more
};

LinkFetch::LinkFetch(std::shared_ptr<LinkCore> core, Isthmus::Stub* stub, FetchRequest request,
                     absl::Time deadline, std::function<void(absl::StatusOr<std::string>)> finish)
    : Transfer(core->loop, deadline),
      core_(std::move(core)),
      stub_(stub),
      request_(std::move(request)),
      finish_(std::move(finish)) {}

LinkFetch::~LinkFetch() { Abandon(); }

void LinkFetch::Abandon() {
  if (call_ != nullptr) call_->Abort(absl::CancelledError("given up"));
  call_ = nullptr;
}

std::string LinkFetch::Describe() const {
  return absl::StrCat("fetch of ", BlobKind_Name(request_.kind()), " of round ", request_.round(),
                      " by site '", request_.life().site(), "'");
}

void LinkFetch::BeginAttempt() {
  request_.set_offset(received_.size());
  core_->traffic.Up(TrafficBytes::CONTROL, request_.ByteSizeLong());
  FetchCall::Events events;
  events.piece = InAttempt([this](const FetchReply& reply) { PieceArrived(reply); });
  events.ended = InAttempt([this](const absl::Status& why) { Ended(why); });
  call_ = std::make_shared<FetchCall>(core_, std::move(events));
  core_->calls.Add(call_);
  call_->Begin(stub_, request_, deadline() - loop()->clock().SteadyNow());
}

void LinkFetch::PieceArrived(const FetchReply& reply) {
  ProgressMade();
  if (total_bytes_ < 0) total_bytes_ = reply.total_bytes();
  const int64_t held = received_.size();
  if (reply.total_bytes() != total_bytes_ || reply.offset() != held ||
      static_cast<int64_t>(reply.piece().size()) > total_bytes_ - held) {
    Finish(absl::DataLossError(absl::StrCat(Describe(), ": piece of ", reply.piece().size(), " bytes at ",
                                            reply.offset(), " of ", reply.total_bytes(), " does not follow ",
                                            held, " of ", total_bytes_)));
    return;
  }
  if (received_.size() + reply.piece().size() > received_.capacity()) {
    // Grows with what arrives, and never past the total.
    received_.reserve(std::min<size_t>(
        total_bytes_, std::max(2 * received_.capacity(), received_.size() + reply.piece().size())));
  }
  received_ += reply.piece();
  core_->meter->Moved(reply.piece().size());
  core_->traffic.Down(TrafficOf(request_.kind()), reply.piece().size());
}

void LinkFetch::Ended(const absl::Status& why) {
  if (why.ok() && static_cast<int64_t>(received_.size()) == total_bytes_) {
    Finish(std::move(received_));
  } else if (why.ok()) {
    Break(absl::UnavailableError(absl::StrCat("the hub ended the fetch at ", received_.size(), " bytes")));
  } else if (IsWorthRetrying(why)) {
    Break(why);
  } else {
    Finish(why);
  }
}

void LinkFetch::Finish(absl::StatusOr<std::string> blob) {
  EndAttempts();
  const auto finish = std::move(finish_);
  finish(std::move(blob));  // destroys this
}

}  // namespace isthmus
