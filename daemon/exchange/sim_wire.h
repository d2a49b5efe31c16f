// One direction of one simulated connection: latency, rate, order, clogging.
//
// What is sent arrives in the order sent, on the loop. Not thread-safe.
#ifndef ISTHMUS_DAEMON_EXCHANGE_SIM_WIRE_H_
#define ISTHMUS_DAEMON_EXCHANGE_SIM_WIRE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "daemon/base/event_loop.h"

namespace isthmus {

class SimWire {
 public:
  // `loop` must outlive the wire. What is on the way when it dies never arrives.
  explicit SimWire(EventLoop* loop) : loop_(loop) {}
  ~SimWire() { *is_alive_ = false; }
  SimWire(const SimWire&) = delete;
  SimWire& operator=(const SimWire&) = delete;

  // One-way latency; bytes per second, 0 for no limit. Holds for what is sent from now on.
  void SetRate(absl::Duration latency, double bytes_per_second);

  // Queues `bytes`. `sent` (may be empty) runs when the last byte has left, `arrived` when it is there.
  void Send(int64_t bytes, std::function<void()> sent, std::function<void()> arrived);

  // As Send, but not before `extra` has been added to its way; what follows waits behind it.
  void SendDelayed(int64_t bytes, absl::Duration extra, std::function<void()> sent,
                   std::function<void()> arrived);

  // Nothing arrives for `length` from now, not even what is on the way; then all of it in order.
  void Clog(absl::Duration length);

  // Latency and transmission take `factor` times as long for what is sent within `length` from now.
  void SlowDown(double factor, absl::Duration length);

 private:
  struct Item {
    absl::Time due;
    std::function<void()> arrived;
  };
  void Arm();
  void DeliverDue();

  EventLoop* const loop_;
  absl::Duration latency_ = absl::Milliseconds(10);
  double bytes_per_second_ = 0;
  absl::Time busy_until_ = absl::InfinitePast();
  absl::Time clogged_until_ = absl::InfinitePast();
  absl::Time slow_until_ = absl::InfinitePast();
  double slow_factor_ = 1;
  bool is_armed_ = false;
  std::deque<Item> queue_;
  // Shared with callbacks in the loop's queue, which may run after the wire is gone.
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_EXCHANGE_SIM_WIRE_H_
