// How our gRPC connections are set up, on both sides: keepalive, windows, sizes, and who may go without TLS.
#ifndef ISTHMUS_DAEMON_RPC_CHANNEL_H_
#define ISTHMUS_DAEMON_RPC_CHANNEL_H_

#include <grpcpp/channel.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/exchange/url.h"

namespace isthmus {

struct RpcOptions {
  // Plain text beyond loopback was asked for aloud (--insecure).
  bool is_insecure_allowed = false;
  // A connection on which nothing came for this long is pinged, and given up when no answer comes within the
  // time-out. The data connection's time-out is six times as long: its pings queue behind data.
  absl::Duration keepalive_interval = absl::Seconds(10);
  absl::Duration keepalive_timeout = absl::Seconds(10);
};

// OK on loopback or when allowed; else FAILED_PRECONDITION telling what to say. `act`: "listening on",
// "dialling".
absl::Status CheckPlainText(const HostPort& address, const RpcOptions& options, const char* act);

enum class ChannelUse { kControl, kData };

// A connection of its own, made at the first call.
std::shared_ptr<grpc::Channel> MakeChannel(const HostPort& address, const RpcOptions& options,
                                           ChannelUse use);

// The same for a server that is being built.
void SetServerArguments(const RpcOptions& options, grpc::ServerBuilder* builder);

// gRPC's own log lines go to ours, as debug lines: what matters in them comes as a status too. Once is
// enough.
void RouteGrpcLog();

// Why nobody can listen there, in the system's words; empty when one can.
std::string WhyCannotListen(const HostPort& address);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_RPC_CHANNEL_H_
