// What the calls of one GrpcLink share.
#ifndef ISTHMUS_DAEMON_RPC_LINK_CORE_H_
#define ISTHMUS_DAEMON_RPC_LINK_CORE_H_

#include <memory>

#include "daemon/base/event_loop.h"
#include "daemon/rpc/call_set.h"
#include "daemon/rpc/socket_meter.h"

namespace isthmus {

// Held by the link and, while gRPC has them, by its calls. The link waits for `calls` to be empty before it
// goes, so the loop is there whenever a call posts.
struct LinkCore {
  // Connections are known by the coordinator's port.
  LinkCore(EventLoop* loop, int port)
      : loop(loop), meter(std::make_unique<SocketMeter>(loop, SocketMeter::Side::kRemotePort, port)) {}

  EventLoop* const loop;
  CallSet calls;
  std::unique_ptr<SocketMeter> meter;  // the loop's; gone when the link is
  TrafficTally traffic;                // the loop's
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_RPC_LINK_CORE_H_
