// The coordinator's side of the transport over gRPC, with status and gRPC's health service.
#ifndef ISTHMUS_DAEMON_RPC_GRPC_HUB_H_
#define ISTHMUS_DAEMON_RPC_GRPC_HUB_H_

#include <cstdint>
#include <memory>

#include "daemon/base/event_loop.h"
#include "daemon/exchange/transport.h"
#include "daemon/exchange/url.h"
#include "daemon/rpc/channel.h"

namespace isthmus {

struct GrpcHubOptions {
  HostPort listen;  // port 0: any free one, see port()
  RpcOptions rpc;
  // Of frames that are on their way up. A frame larger than this is refused as INVALID_ARGUMENT.
  int64_t held_frames_bytes = int64_t{8} << 30;
  // Budget of updates and snapshots going out to all sites together; 0: no limit.
  double data_bytes_per_second = 0;
  // Snapshots sent at a time; further ones wait their turn.
  int most_snapshots_under_way = 4;
};

// Made, used and destroyed on the loop's thread.
class GrpcHub : public Hub {
 public:
  // `loop` must outlive the hub.
  GrpcHub(EventLoop* loop, GrpcHubOptions options);
  // Stops.
  ~GrpcHub() override;

  // Also FAILED_PRECONDITION: not on loopback and not allowed in plain text.
  absl::Status Start(Hub::Listener* listener) override;
  void Send(SessionId session, const CoordinatorMessage& message) override;
  void CloseSession(SessionId session) override;
  void PublishStatus(const RunStatus& status) override;
  TransferCount transferred() const override;
  // Lets sessions' queued messages out for up to a second, breaks everything else off, listens no more.
  void Stop() override;

  // The one bound; 0 before Start.
  int port() const;

 private:
  struct Server;
  const GrpcHubOptions options_;
  EventLoop* const loop_;
  std::unique_ptr<Server> server_;  // while started
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_RPC_GRPC_HUB_H_
