#include "daemon/rpc/health_probe.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/support/byte_buffer.h>

#include <string>

#include "daemon/rpc/channel.h"
#include "daemon/rpc/status_conversion.h"

namespace isthmus {
namespace {

constexpr char kMethod[] = "/grpc.health.v1.Health/Check";
// HealthCheckResponse { status: SERVING }: field 1, a varint, 1.
constexpr char kServing[] = "\x08\x01";

}  // namespace

absl::StatusOr<bool> IsServing(const HostPort& address, absl::Duration timeout) {
  const auto channel = MakeChannel(address, RpcOptions(), ChannelUse::kControl);
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(timeout));
  const grpc::internal::RpcMethod method(kMethod, grpc::internal::RpcMethod::NORMAL_RPC);
  // The request names no service, which is the server as a whole: an empty message.
  const grpc::ByteBuffer request(nullptr, 0);
  grpc::ByteBuffer answer;
  const grpc::Status status =
      grpc::internal::BlockingUnaryCall(channel.get(), method, &context, request, &answer);
  if (!status.ok()) return FromGrpc(status);
  grpc::Slice bytes;
  if (!answer.DumpToSingleSlice(&bytes).ok()) return absl::InternalError("the answer cannot be read");
  return std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size()) == kServing;
}

}  // namespace isthmus
