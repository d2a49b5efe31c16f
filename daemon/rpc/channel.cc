#include "daemon/rpc/channel.h"

#include <grpc/support/log.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/logging.h"

namespace isthmus {
namespace {

// Wide enough for 40 MB/s at 100 ms; gRPC's own probing widens it further.
constexpr int kWindowBytes = 4 << 20;
// Workers' messages are small and frames come in pieces; this only bounds what a stranger can make us hold.
constexpr int kMostFromWorkerBytes = 64 << 20;
constexpr int kUnlimited = -1;

int Milliseconds(absl::Duration d) { return static_cast<int>(absl::ToInt64Milliseconds(d)); }

void LogGrpcLine(gpr_log_func_args* line) {
  // An assertion of gRPC's ends the process: its last words are not for the debug level.
  const bool is_last_word = absl::StrContains(line->message, "assertion failed");
  Log(is_last_word ? LogLevel::kError : LogLevel::kDebug, "", -1, absl::StrCat("grpc: ", line->message));
}

}  // namespace

absl::Status CheckPlainText(const HostPort& address, const RpcOptions& options, const char* act) {
  if (options.is_insecure_allowed || address.IsLoopback()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(act, " ", address.ToString(),
                   " would send the run in plain text over the network; say --insecure if that is meant"));
}

std::shared_ptr<grpc::Channel> MakeChannel(const HostPort& address, const RpcOptions& options,
                                           ChannelUse use) {
  RouteGrpcLog();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // we resume; gRPC would keep copies to repeat
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  const int patience = use == ChannelUse::kData ? 6 : 1;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options.keepalive_interval));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(options.keepalive_timeout) * patience);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  if (use == ChannelUse::kData) arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  arguments.SetMaxReceiveMessageSize(kUnlimited);
  arguments.SetMaxSendMessageSize(kUnlimited);
  return grpc::CreateCustomChannel(address.ToString(), grpc::InsecureChannelCredentials(), arguments);
}

void SetServerArguments(const RpcOptions& options, grpc::ServerBuilder* builder) {
  RouteGrpcLog();
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options.keepalive_interval));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(options.keepalive_timeout) * 6);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Pings as often as workers are told to send them are welcome.
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              Milliseconds(options.keepalive_interval) / 2);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  builder->SetMaxReceiveMessageSize(kMostFromWorkerBytes);
  builder->SetMaxSendMessageSize(kUnlimited);
}

void RouteGrpcLog() { gpr_set_log_function(&LogGrpcLine); }

std::string WhyCannotListen(const HostPort& address) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(address.host.c_str(), absl::StrCat(address.port).c_str(), &hints, &found);
  if (error != 0) return gai_strerror(error);
  std::string why;
  for (addrinfo* at = found; at != nullptr && why.empty(); at = at->ai_next) {
    const int fd = socket(at->ai_family, at->ai_socktype, at->ai_protocol);
    const int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (fd < 0 || bind(fd, at->ai_addr, at->ai_addrlen) != 0 || listen(fd, 1) != 0)
      why = std::strerror(errno);
    if (fd >= 0) close(fd);
  }
  freeaddrinfo(found);
  return why;
}

}  // namespace isthmus
