#include "daemon/rounds/pace.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace isthmus {
namespace {

constexpr size_t kMeasurements = 5;
constexpr int64_t kMostTimesNominal = 4;
// Of the hard deadline. Steps that do not fit abort the round, and the next one, until they add up.
constexpr double kDeadlineShare = 0.9;

bool IsKnown(const SitePace& s) { return std::isfinite(s.steps_per_second) && s.steps_per_second > 0; }

// Time for `steps` steps and the upload, in seconds.
double SecondsFor(const SitePace& s, int64_t steps) {
  return steps / s.steps_per_second + absl::ToDoubleSeconds(s.upload);
}

// 0 when nothing is known.
double PlannedSeconds(absl::Span<const SitePace> sites, int64_t nominal_steps, absl::Duration longest_round) {
  std::vector<const SitePace*> known;
  for (const SitePace& s : sites) {
    if (IsKnown(s)) known.push_back(&s);
  }
  if (known.empty()) return 0;
  std::sort(known.begin(), known.end(), [](const SitePace* a, const SitePace* b) {
    return std::tie(a->steps_per_second, a->life) < std::tie(b->steps_per_second, b->life);
  });
  const double wanted =
      SecondsFor(*known[known.size() / 2], nominal_steps);  // the upper middle is the faster
  return std::min(wanted, kDeadlineShare * absl::ToDoubleSeconds(longest_round));
}

template <typename T>
T MedianOf(const std::deque<T>& values) {
  if (values.empty()) return T();
  std::vector<T> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

}  // namespace

std::vector<SiteSteps> PlanSteps(absl::Span<const SitePace> sites, int64_t nominal_steps,
                                 absl::Duration longest_round) {
  const double planned = PlannedSeconds(sites, nominal_steps, longest_round);
  const double most = static_cast<double>(kMostTimesNominal * nominal_steps);
  std::vector<SiteSteps> plan;
  for (const SitePace& s : sites) {
    int64_t steps = nominal_steps;
    if (IsKnown(s)) {
      const double left = planned - absl::ToDoubleSeconds(s.upload) - absl::ToDoubleSeconds(s.other_work);
      // The allowance keeps rounding from taking a whole step from a site that fits exactly.
      steps = static_cast<int64_t>(std::floor(std::clamp(left * s.steps_per_second + 1e-6, 1.0, most)));
    }
    plan.push_back({s.life, steps});
  }
  return plan;
}

absl::Duration PlannedRound(absl::Span<const SitePace> sites, int64_t nominal_steps,
                            absl::Duration longest_round) {
  return absl::Seconds(PlannedSeconds(sites, nominal_steps, longest_round));
}

void PaceLearner::StepsDone(int64_t steps, absl::Duration busy) {
  if (steps <= 0 || busy <= absl::ZeroDuration()) return;
  speeds_.push_back(steps / absl::ToDoubleSeconds(busy));
  if (speeds_.size() > kMeasurements) speeds_.pop_front();
}

void PaceLearner::Uploaded(absl::Duration duration) {
  if (duration < absl::ZeroDuration()) return;
  uploads_.push_back(duration);
  if (uploads_.size() > kMeasurements) uploads_.pop_front();
}

double PaceLearner::steps_per_second() const { return MedianOf(speeds_); }

absl::Duration PaceLearner::upload() const { return MedianOf(uploads_); }

}  // namespace isthmus
