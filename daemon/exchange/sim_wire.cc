#include "daemon/exchange/sim_wire.h"

#include <algorithm>
#include <utility>

namespace isthmus {

void SimWire::SetRate(absl::Duration latency, double bytes_per_second) {
  latency_ = latency;
  bytes_per_second_ = bytes_per_second;
}

void SimWire::Send(int64_t bytes, std::function<void()> sent, std::function<void()> arrived) {
  SendDelayed(bytes, absl::ZeroDuration(), std::move(sent), std::move(arrived));
}

void SimWire::SendDelayed(int64_t bytes, absl::Duration extra, std::function<void()> sent,
                          std::function<void()> arrived) {
  const absl::Time now = loop_->clock().SteadyNow();
  const double factor = now < slow_until_ ? slow_factor_ : 1;
  busy_until_ = std::max(busy_until_, now);
  if (bytes_per_second_ > 0) busy_until_ += absl::Seconds(bytes / bytes_per_second_) * factor;
  absl::Time due = busy_until_ + latency_ * factor + extra;
  if (!queue_.empty()) due = std::max(due, queue_.back().due);
  if (sent) {
    loop_->RunAt(busy_until_, [alive = is_alive_, sent = std::move(sent)] {
      if (*alive) sent();
    });
  }
  queue_.push_back({due, std::move(arrived)});
  if (!is_armed_) Arm();
}

void SimWire::Clog(absl::Duration length) {
  clogged_until_ = std::max(clogged_until_, loop_->clock().SteadyNow() + length);
}

void SimWire::SlowDown(double factor, absl::Duration length) {
  slow_factor_ = factor;
  slow_until_ = loop_->clock().SteadyNow() + length;
}

void SimWire::Arm() {
  is_armed_ = true;
  loop_->RunAt(std::max(queue_.front().due, clogged_until_), [this, alive = is_alive_] {
    if (*alive) DeliverDue();
  });
}

void SimWire::DeliverDue() {
  is_armed_ = false;
  const absl::Time now = loop_->clock().SteadyNow();
  if (now >= clogged_until_ && !queue_.empty() && queue_.front().due <= now) {
    std::function<void()> arrived = std::move(queue_.front().arrived);
    queue_.pop_front();
    if (!queue_.empty()) Arm();
    arrived();  // last: it may destroy this wire
    return;
  }
  if (!queue_.empty()) Arm();
}

}  // namespace isthmus
