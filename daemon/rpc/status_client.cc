#include "daemon/rpc/status_client.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"
#include "daemon/exchange/retry_pause.h"
#include "daemon/rpc/status_conversion.h"
#include "protos/service.grpc.pb.h"

namespace isthmus {

struct StatusClient::Stub {
  std::shared_ptr<grpc::Channel> channel;  // shared with gRPC
  std::unique_ptr<Isthmus::Stub> stub;
};

absl::StatusOr<std::unique_ptr<StatusClient>> StatusClient::Create(Clock* clock, const HostPort& coordinator,
                                                                   const RpcOptions& options) {
  ISTHMUS_RETURN_IF_ERROR(CheckPlainText(coordinator, options, "asking"));
  return std::unique_ptr<StatusClient>(new StatusClient(clock, coordinator, options));
}

StatusClient::StatusClient(Clock* clock, const HostPort& coordinator, const RpcOptions& options)
    : clock_(clock), coordinator_(coordinator), stub_(std::make_unique<Stub>()) {
  stub_->channel = MakeChannel(coordinator, options, ChannelUse::kControl);
  stub_->stub = Isthmus::NewStub(stub_->channel);
}

StatusClient::~StatusClient() { Stop(); }

absl::StatusOr<RunStatus> StatusClient::Ask(const StatusRequest& request, absl::Duration timeout) {
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(timeout));
  RunStatus answer;
  const grpc::Status status = stub_->stub->Status(&context, request, &answer);
  if (!status.ok()) {
    return Annotate(FromGrpc(status), absl::StrCat("coordinator ", coordinator_.ToString()));
  }
  return answer;
}

absl::Status StatusClient::WatchOnce(const StatusRequest& request,
                                     const std::function<bool(const RunStatus&)>& seen, bool* was_seen) {
  // No deadline: watching lasts until the watcher or Stop ends it.
  grpc::ClientContext context;
  {
    absl::MutexLock lock(&mutex_);
    if (is_stopped_) return absl::OkStatus();
    cancel_ = [&context] { context.TryCancel(); };
  }
  std::unique_ptr<grpc::ClientReader<RunStatus>> reader = stub_->stub->WatchStatus(&context, request);
  RunStatus status;
  bool is_enough = false;
  while (!is_enough && reader->Read(&status)) {
    *was_seen = true;
    is_enough = !seen(status);
  }
  if (is_enough) context.TryCancel();
  const absl::Status end = FromGrpc(reader->Finish());
  absl::MutexLock lock(&mutex_);
  cancel_ = nullptr;
  if (is_enough || is_stopped_) return absl::OkStatus();
  return end.ok() ? absl::UnavailableError("the coordinator ended the stream") : end;
}

void StatusClient::Watch(const StatusRequest& request, const std::function<bool(const RunStatus&)>& seen,
                         const std::function<bool(const absl::Status&)>& lost) {
  RetryPause backoff;
  while (true) {
    bool was_seen = false;
    const absl::Status end = WatchOnce(request, seen, &was_seen);
    if (end.ok()) return;
    if (!lost(Annotate(end, absl::StrCat("coordinator ", coordinator_.ToString())))) return;
    if (was_seen) backoff.Reset();
    absl::MutexLock lock(&mutex_);
    if (clock_->AwaitUntil(&mutex_, absl::Condition(&is_stopped_), clock_->SteadyNow() + backoff.Next()))
      return;
  }
}

void StatusClient::Stop() {
  absl::MutexLock lock(&mutex_);
  is_stopped_ = true;
  if (cancel_) cancel_();
}

}  // namespace isthmus
