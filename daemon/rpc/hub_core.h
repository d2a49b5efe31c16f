// What the calls of one GrpcHub share: the loop, the listener, what is held and what is allowed.
#ifndef ISTHMUS_DAEMON_RPC_HUB_CORE_H_
#define ISTHMUS_DAEMON_RPC_HUB_CORE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "daemon/base/event_loop.h"
#include "daemon/exchange/pacer.h"
#include "daemon/exchange/partial_frames.h"
#include "daemon/exchange/transport.h"
#include "daemon/rpc/call_set.h"
#include "daemon/rpc/socket_meter.h"

namespace isthmus {

class HubSession;
class HubWatch;

// All but `Post` and `calls` belong to the loop. Held by the hub and, while gRPC has them, by its calls.
struct HubCore {
  HubCore(EventLoop* loop, int64_t held_frames_bytes, double data_bytes_per_second)
      : loop(loop), frames(held_frames_bytes), pacer(loop, data_bytes_per_second) {}

  // Runs `fn` on the loop unless the hub has stopped by then. Any thread, as long as the caller's call is in
  // `calls`.
  void Post(std::function<void()> fn) {
    loop->Post([alive = is_alive, fn = std::move(fn)] {
      if (*alive) fn();
    });
  }

  EventLoop* const loop;
  CallSet calls;
  // Shared with what is in the loop's queue, which may run after the hub has stopped.
  const std::shared_ptr<bool> is_alive = std::make_shared<bool>(true);

  Hub::Listener* listener = nullptr;
  std::unique_ptr<SocketMeter> meter;
  TrafficTally traffic;
  PartialFrames frames;
  Pacer pacer;
  SessionId next_session = 1;
  std::map<SessionId, std::shared_ptr<HubSession>> sessions;  // shared with `calls`
  std::map<HubWatch*, std::shared_ptr<HubWatch>> watches;     // shared with `calls`
  // Snapshots are large and many may be wanted at once: a few travel, the others wait their turn.
  int snapshots_under_way = 0;
  int most_snapshots_under_way = 4;
  std::deque<std::function<void()>> snapshots_waiting;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_RPC_HUB_CORE_H_
