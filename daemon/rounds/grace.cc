#include "daemon/rounds/grace.h"

#include <algorithm>
#include <vector>

namespace isthmus {
namespace {

constexpr size_t kWindow = 16;
constexpr size_t kFewestSamples = 3;

// Of a non-empty list; the mean of the middle two when even.
absl::Duration Median(std::vector<absl::Duration> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

}  // namespace

void GraceLearner::RoundClosed(RoundId round, absl::Duration lateness, absl::Duration duration) {
  samples_.push_back(
      {round, std::max(lateness, absl::ZeroDuration()), std::max(duration, absl::ZeroDuration())});
  if (samples_.size() > kWindow) samples_.pop_front();
}

void GraceLearner::LateArrival(RoundId round, absl::Duration lateness) {
  for (Sample& s : samples_) {
    if (s.round == round) s.lateness = std::max(s.lateness, lateness);
  }
}

absl::Duration GraceLearner::MedianDuration() const {
  if (samples_.empty()) return absl::ZeroDuration();
  std::vector<absl::Duration> durations;
  for (const Sample& s : samples_) durations.push_back(s.duration);
  return Median(std::move(durations));
}

std::optional<absl::Duration> GraceLearner::Grace() const {
  if (samples_.size() < kFewestSamples) return std::nullopt;
  std::vector<absl::Duration> lateness, deviations;
  for (const Sample& s : samples_) lateness.push_back(s.lateness);
  const absl::Duration middle = Median(lateness);
  for (absl::Duration l : lateness) deviations.push_back(absl::AbsDuration(l - middle));
  const absl::Duration round = MedianDuration();
  return std::clamp(middle + 4 * Median(std::move(deviations)), round / 10, round / 2);
}

}  // namespace isthmus
