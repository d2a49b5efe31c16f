#include "daemon/rpc/grpc_link.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"
#include "daemon/rpc/link_core.h"
#include "daemon/rpc/link_fetch.h"
#include "daemon/rpc/link_session.h"
#include "daemon/rpc/link_upload.h"
#include "protos/service.grpc.pb.h"

namespace isthmus {
namespace {

// How long queued messages may take to go out at the end.
constexpr absl::Duration kClosePatience = absl::Seconds(1);

// What gRPC makes of broken connections is one thing to us.
absl::Status WhyOver(const absl::Status& why) {
  switch (why.code()) {
    case absl::StatusCode::kOk:
      return absl::UnavailableError("the coordinator closed the session");
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kInternal:
      return absl::UnavailableError(why.message());
    default:
      return why;
  }
}

}  // namespace

struct GrpcLink::Data {
  std::shared_ptr<grpc::Channel> channel;  // shared with gRPC
  std::unique_ptr<Isthmus::Stub> stub;
};

absl::StatusOr<std::unique_ptr<GrpcLink>> GrpcLink::Create(EventLoop* loop, const GrpcLinkOptions& options) {
  ISTHMUS_RETURN_IF_ERROR(CheckPlainText(options.coordinator, options.rpc, "dialling"));
  return std::unique_ptr<GrpcLink>(new GrpcLink(loop, options));
}

GrpcLink::GrpcLink(EventLoop* loop, const GrpcLinkOptions& options)
    : loop_(loop),
      options_(options),
      core_(std::make_shared<LinkCore>(loop, options.coordinator.port)),
      pacer_(loop, options.upload_bytes_per_second) {}

GrpcLink::~GrpcLink() {
  Close();
  *is_alive_ = false;
  const absl::Status why = absl::CancelledError("the link is gone");
  core_->calls.WindAll(why);
  core_->calls.AwaitEmpty(&loop_->clock(), loop_->clock().SteadyNow() + kClosePatience);
  core_->calls.AbortAll(why);
  core_->calls.AwaitEmpty(&loop_->clock(), absl::InfiniteFuture());
  core_->meter.reset();
}

void GrpcLink::Dial(WorkerLink::Listener* listener, absl::Time deadline) {
  if (session_ != nullptr) return;
  listener_ = listener;
  const int64_t dial = ++dial_;
  auto guarded = [this, alive = is_alive_, dial](auto fn) {
    return [this, alive, dial, fn](auto&&... arguments) {
      if (*alive && dial == dial_) fn(std::forward<decltype(arguments)>(arguments)...);
    };
  };
  LinkSession::Events events;
  events.opened = guarded([this] {
    loop_->Cancel(dial_timer_);
    is_open_ = true;
    listener_->SessionOpened();
  });
  events.received = guarded([this](CoordinatorMessage message) {
    core_->traffic.Down(TrafficBytes::CONTROL, message.ByteSizeLong());
    if (is_open_) listener_->MessageReceived(std::move(message));
  });
  events.ended = guarded([this, dial](const absl::Status& why) { SessionOver(dial, WhyOver(why)); });
  session_ = std::make_shared<LinkSession>(
      core_, MakeChannel(options_.coordinator, options_.rpc, ChannelUse::kControl), std::move(events));
  core_->calls.Add(session_);
  session_->Begin();
  dial_timer_ = loop_->RunAt(
      deadline, guarded([this, dial] { SessionOver(dial, absl::UnavailableError("no answer in time")); }));
}

void GrpcLink::SessionOver(int64_t dial, const absl::Status& why) {
  ++dial_;
  loop_->Cancel(dial_timer_);
  is_open_ = false;
  std::exchange(session_, nullptr)->Abort(why);
  listener_->SessionClosed(Annotate(why, absl::StrCat("coordinator ", options_.coordinator.ToString())));
}

void GrpcLink::Send(const WorkerMessage& message) {
  if (!is_open_) return;
  core_->traffic.Up(TrafficBytes::CONTROL, message.ByteSizeLong());
  session_->Send(message);
}

void GrpcLink::Close() {
  uploads_.clear();
  fetches_.clear();
  loop_->Cancel(dial_timer_);
  ++dial_;
  is_open_ = false;
  if (session_ == nullptr) return;
  const absl::Status why = absl::CancelledError("closed");
  session_->Wind(why);
  loop_->RunAfter(kClosePatience, [session = std::move(session_), why] { session->Abort(why); });
  session_ = nullptr;
}

GrpcLink::Data* GrpcLink::data() {
  if (data_ == nullptr) {
    data_ = std::make_unique<Data>();
    data_->channel = MakeChannel(options_.coordinator, options_.rpc, ChannelUse::kData);
    data_->stub = Isthmus::NewStub(data_->channel);
  }
  return data_.get();
}

void GrpcLink::Upload(const ContributionHeader& header, SharedBytes frame, absl::Time deadline,
                      std::function<void(absl::Status)> done) {
  const int64_t id = next_transfer_++;
  auto finish = [this, id, done = std::move(done)](const absl::Status& status) {
    const auto finished = std::move(uploads_[id]);
    uploads_.erase(id);
    done(status);
  };
  uploads_[id] = std::make_unique<LinkUpload>(core_, data()->stub.get(), &pacer_, header, std::move(frame),
                                              deadline, std::move(finish));
  uploads_[id]->Start();
}

void GrpcLink::Fetch(const std::string& run_id, const Life& life, const BlobName& name, absl::Time deadline,
                     std::function<void(absl::StatusOr<std::string>)> done) {
  FetchRequest request;
  request.set_run_id(run_id);
  request.set_kind(name.kind);
  request.set_round(name.round);
  request.set_fragment(name.fragment);
  *request.mutable_life() = life;
  const int64_t id = next_transfer_++;
  auto finish = [this, id, done = std::move(done)](absl::StatusOr<std::string> blob) {
    const auto finished = std::move(fetches_[id]);
    fetches_.erase(id);
    done(std::move(blob));
  };
  fetches_[id] =
      std::make_unique<LinkFetch>(core_, data()->stub.get(), std::move(request), deadline, std::move(finish));
  fetches_[id]->Start();
}

TransferCount GrpcLink::transferred() const {
  TransferCount count = core_->meter->Sample();
  count.classes = core_->traffic;
  return count;
}

}  // namespace isthmus
