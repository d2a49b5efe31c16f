// Counts the bytes on this process's own TCP connections to or from one port, as the kernel counts them.
//
// What HTTP/2 and gRPC add, and what is sent again above TCP, is in; IP and TCP headers and TCP's own repeats
// are not. What a connection moved in the last half second before it broke may be missed.
#ifndef ISTHMUS_DAEMON_RPC_SOCKET_METER_H_
#define ISTHMUS_DAEMON_RPC_SOCKET_METER_H_

#include <cstdint>
#include <map>
#include <memory>

#include "daemon/base/event_loop.h"
#include "daemon/exchange/transport.h"

namespace isthmus {

// On the loop's thread.
class SocketMeter {
 public:
  // Which end of a connection has the port: ours (a hub's) or the other (a link's).
  enum class Side { kLocalPort, kRemotePort };

  // Samples by itself every half second. `loop` must outlive the meter.
  SocketMeter(EventLoop* loop, Side side, int port);
  ~SocketMeter();

  // Counts now; the sum over all connections so far, also those that are gone.
  TransferCount Sample();

  // About so many bytes were sent or received; counts at every mebibyte of them.
  void Moved(int64_t bytes);

 private:
  void Tick();

  EventLoop* const loop_;
  const Side side_;
  const int port_;
  TimerId timer_ = 0;
  int64_t moved_bytes_ = 0;                 // since the last count
  TransferCount closed_;                    // of connections that are gone
  std::map<uint64_t, TransferCount> open_;  // by the socket's inode
  // Shared with the callback in the loop's queue, which may run after the meter is gone.
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_RPC_SOCKET_METER_H_
