#include "daemon/exchange/pacer.h"

#include <algorithm>
#include <utility>

#include "daemon/exchange/partial_frames.h"

namespace isthmus {
namespace {

constexpr int64_t kBurstsPerSecond = 20, kPiecesPerSecond = 4;
constexpr int64_t kSmallestPieceBytes = 4096;

}  // namespace

absl::Time TokenBucket::Reserve(int64_t bytes, absl::Time now) {
  if (bytes_per_second_ <= 0) return now;
  // A burst is credit: time before now that counts as not yet used.
  const absl::Time earliest = now - absl::Seconds(burst_bytes_ / bytes_per_second_);
  paid_until_ = std::max(paid_until_, earliest) + absl::Seconds(bytes / bytes_per_second_);
  return std::max(now, paid_until_);
}

Pacer::Pacer(EventLoop* loop, double bytes_per_second)
    : loop_(loop),
      bucket_(bytes_per_second, static_cast<int64_t>(bytes_per_second / kBurstsPerSecond)),
      piece_bytes_(bytes_per_second <= 0
                       ? kPieceBytes
                       : static_cast<int64_t>(std::clamp<double>(bytes_per_second / kPiecesPerSecond,
                                                                 kSmallestPieceBytes, kPieceBytes))) {}

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
