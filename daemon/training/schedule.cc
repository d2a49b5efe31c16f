#include "daemon/training/schedule.h"

#include <algorithm>
#include <cmath>

namespace isthmus {

double LearningRate(const ScheduleOptions& options, int64_t step) {
  const int64_t total = std::max<int64_t>(1, options.total_steps);
  const int64_t warmup = std::max<int64_t>(1, static_cast<int64_t>(options.warmup_fraction * total));
  step = std::clamp<int64_t>(step, 0, total);
  if (step < warmup) return options.peak_rate * (step + 1) / warmup;
  const double progress = static_cast<double>(step - warmup) / std::max<int64_t>(1, total - warmup);
  const double cosine = 0.5 * (1 + std::cos(M_PI * std::min(1.0, progress)));
  return options.peak_rate * (options.floor_fraction + (1 - options.floor_fraction) * cosine);
}

int64_t ScheduleStepOf(const StepPosition& p) {
  const int64_t h = p.inner_steps_per_round;
  const int64_t within = std::min(h - 1, p.steps_done * h / std::max<int64_t>(1, p.assigned_steps));
  return p.schedule_step + (p.is_frame_pending ? h : 0) + within;
}

double AutoOuterRate(int64_t total_steps) {
  const double rate = 1 + 0.5 * std::log2(static_cast<double>(std::max<int64_t>(1, total_steps)) / 2000);
  return std::round(std::clamp(rate, 1.0, 2.0) * 16) / 16;
}

int64_t AutoKeptPerBlock(int64_t total_rounds) {
  const double exponent = std::log2(20000.0 / std::max<int64_t>(1, total_rounds));
  return int64_t{1} << std::clamp<int64_t>(std::llround(exponent), 6, 9);
}

}  // namespace isthmus
