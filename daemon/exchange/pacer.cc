#include "daemon/exchange/pacer.h"

#include <algorithm>
#include <utility>

#include "daemon/exchange/partial_frames.h"

namespace isthmus {

absl::Time TokenBucket::Reserve(int64_t bytes, absl::Time now) {
  if (bytes_per_second_ <= 0) return now;
  // A burst is credit: time before now that counts as not yet used.
  const absl::Time earliest = now - absl::Seconds(burst_bytes_ / bytes_per_second_);
  paid_until_ = std::max(paid_until_, earliest) + absl::Seconds(bytes / bytes_per_second_);
  return std::max(now, paid_until_);
}

Pacer::Pacer(EventLoop* loop, double bytes_per_second)
    : loop_(loop),
      bucket_(bytes_per_second, std::max<int64_t>(kPieceBytes, static_cast<int64_t>(bytes_per_second / 4))) {}

void Pacer::WhenDue(int64_t bytes, std::function<void()> fn) {
  const absl::Time now = loop_->clock().SteadyNow();
  const absl::Time due = bucket_.Reserve(bytes, now);
  if (due <= now) {
    fn();
  } else {
    loop_->RunAt(due, std::move(fn));
  }
}

}  // namespace isthmus
