// Learning rates by schedule step, and the settings that follow from the length of a run (ROUNDS §4, §10).
//
// Pure functions, thread-safe.
#ifndef ISTHMUS_DAEMON_TRAINING_SCHEDULE_H_
#define ISTHMUS_DAEMON_TRAINING_SCHEDULE_H_

#include <cstdint>

namespace isthmus {

// Linear warm-up, then a cosine down to the floor.
struct ScheduleOptions {
  double peak_rate = 3e-3;
  double warmup_fraction = 0.05;  // of total_steps
  double floor_fraction = 0.05;   // of the peak, at the end and after it
  int64_t total_steps = 1;        // schedule steps of the whole run, ≥ 1
};

// The rate at schedule step `step` ≥ 0.
double LearningRate(const ScheduleOptions& options, int64_t step);

// Where an inner step stands on the schedule: S + p·H + min(H − 1, floor(i·H / H_r)).
struct StepPosition {
  int64_t schedule_step = 0;          // S, of the newest commit applied
  bool is_frame_pending = false;      // p
  int64_t inner_steps_per_round = 1;  // H
  int64_t assigned_steps = 1;         // H_r
  int64_t steps_done = 0;  // i: since one's last encode or, none pending, since the last commit applied
};
int64_t ScheduleStepOf(const StepPosition& position);

// α `auto`: 1 + 0.5·log2(steps / 2000) within 1 … 2, rounded to 1/16; `total_steps` as in ScheduleOptions.
// Why: compression/README.md.
double AutoOuterRate(int64_t total_steps);

// k `auto`: the power of two nearest (in log2) to 20,000 / rounds, within 64 … 512.
int64_t AutoKeptPerBlock(int64_t total_rounds);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_SCHEDULE_H_
