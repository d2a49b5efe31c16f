#include "daemon/rpc/grpc_hub.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"
#include "daemon/rpc/hub_core.h"
#include "daemon/rpc/hub_fetch.h"
#include "daemon/rpc/hub_session.h"
#include "daemon/rpc/hub_status.h"
#include "daemon/rpc/hub_upload.h"
#include "daemon/rpc/socket_meter.h"
#include "protos/service.grpc.pb.h"

namespace isthmus {
namespace {

// How long Stop lets queued messages go out.
constexpr absl::Duration kStopPatience = absl::Seconds(1);

// Called in gRPC's threads: makes the call and hands it on.
class Service : public Isthmus::CallbackService {
 public:
  // `core` is shared by the hub and its calls.
  explicit Service(std::shared_ptr<HubCore> core) : core_(std::move(core)) {}

  grpc::ServerBidiReactor<WorkerMessage, CoordinatorMessage>* Session(
      grpc::CallbackServerContext* context) override {
    return Begin(std::make_shared<HubSession>(core_, context));
  }
  grpc::ServerBidiReactor<UploadRequest, UploadReply>* Upload(grpc::CallbackServerContext* context) override {
    return Begin(std::make_shared<HubUpload>(core_, context));
  }
  grpc::ServerWriteReactor<FetchReply>* Fetch(grpc::CallbackServerContext* context,
                                              const FetchRequest* request) override {
    return Begin(std::make_shared<HubFetch>(core_, context, *request));
  }
  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext*, const StatusRequest* request,
                                   RunStatus* answer) override {
    return Begin(std::make_shared<HubStatus>(core_, *request, answer));
  }
  grpc::ServerWriteReactor<RunStatus>* WatchStatus(grpc::CallbackServerContext* context,
                                                   const StatusRequest* request) override {
    return Begin(std::make_shared<HubWatch>(core_, context, *request));
  }

 private:
  template <typename T>
  T* Begin(std::shared_ptr<T> call) {
    T* raw = call.get();
    core_->calls.Add(call);
    call->Begin();
    return raw;
  }

  const std::shared_ptr<HubCore> core_;
};

}  // namespace

struct GrpcHub::Server {
  explicit Server(std::shared_ptr<HubCore> core) : core(core), service(std::move(core)) {}

  const std::shared_ptr<HubCore> core;  // shared with its calls
  Service service;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

GrpcHub::GrpcHub(EventLoop* loop, GrpcHubOptions options) : options_(std::move(options)), loop_(loop) {}

GrpcHub::~GrpcHub() { Stop(); }

absl::Status GrpcHub::Start(Hub::Listener* listener) {
  if (server_ != nullptr) return absl::FailedPreconditionError("the hub is started already");
  ISTHMUS_RETURN_IF_ERROR(CheckPlainText(options_.listen, options_.rpc, "listening on"));
  auto core = std::make_shared<HubCore>(loop_, options_.held_frames_bytes, options_.data_bytes_per_second);
  core->listener = listener;
  core->most_snapshots_under_way = options_.most_snapshots_under_way;
  auto server = std::make_unique<Server>(core);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  SetServerArguments(options_.rpc, &builder);
  const std::string address = options_.listen.ToString();
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &server->port);
  builder.RegisterService(&server->service);
  server->server = builder.BuildAndStart();
  if (server->server == nullptr || server->port == 0) {
    *core->is_alive = false;
    const std::string why = WhyCannotListen(options_.listen);
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address, ": ", why.empty() ? "gRPC refused the address" : why));
  }
  core->meter = std::make_unique<SocketMeter>(loop_, SocketMeter::Side::kLocalPort, server->port);
  server_ = std::move(server);
  return absl::OkStatus();
}

void GrpcHub::Stop() {
  if (server_ == nullptr) return;
  HubCore& core = *server_->core;
  *core.is_alive = false;  // what is in the loop's queue stays undone
  const absl::Status why = absl::UnavailableError("the coordinator stopped");
  if (auto* health = server_->server->GetHealthCheckService()) health->Shutdown();
  core.calls.WindAll(why);
  core.calls.AwaitEmpty(&loop_->clock(), loop_->clock().SteadyNow() + kStopPatience);
  core.calls.AbortAll(why);
  server_->server->Shutdown(gpr_inf_past(GPR_CLOCK_MONOTONIC));
  server_->server->Wait();
  core.sessions.clear();
  core.watches.clear();
  core.snapshots_waiting.clear();
  core.meter.reset();
  server_.reset();
}

void GrpcHub::Send(SessionId session, const CoordinatorMessage& message) {
  if (server_ == nullptr) return;
  auto it = server_->core->sessions.find(session);
  if (it != server_->core->sessions.end()) it->second->Send(message);
}

void GrpcHub::CloseSession(SessionId session) {
  if (server_ == nullptr) return;
  auto it = server_->core->sessions.find(session);
  if (it == server_->core->sessions.end()) return;
  it->second->Mute();
  it->second->Wind(absl::OkStatus());
}

void GrpcHub::PublishStatus(const RunStatus& status) {
  if (server_ == nullptr) return;
  for (const auto& [raw, watch] : server_->core->watches) watch->Publish(status);
}

TransferCount GrpcHub::transferred() const {
  if (server_ == nullptr) return TransferCount();
  TransferCount count = server_->core->meter->Sample();
  count.classes = server_->core->traffic;
  return count;
}

int GrpcHub::port() const { return server_ == nullptr ? 0 : server_->port; }

}  // namespace isthmus
