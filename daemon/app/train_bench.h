// How fast a trainer takes inner steps on this machine: the number a site's speed limit is set by.
#ifndef ISTHMUS_DAEMON_APP_TRAIN_BENCH_H_
#define ISTHMUS_DAEMON_APP_TRAIN_BENCH_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/training/trainer.h"
#include "daemon/training/training_data.h"

namespace isthmus {

struct TrainBenchResult {
  int64_t steps = 0;
  int64_t tokens = 0;
  double seconds = 0;
  double first_loss = 0, last_loss = 0;

  double steps_per_second() const { return seconds > 0 ? static_cast<double>(steps) / seconds : 0; }
  double tokens_per_second() const { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }
};

// One step that is not counted, then steps over `data` in order until `length` has passed (at least one).
// Moves the trainer's parameters. INVALID_ARGUMENT: no data; else the trainer's errors.
absl::StatusOr<TrainBenchResult> MeasureTraining(Trainer* trainer, const TrainingData& data,
                                                 const Clock& clock, int64_t sequences_per_step, double rate,
                                                 absl::Duration length);

std::string TrainBenchTable(const TrainBenchResult& result);
// One object on one line.
std::string TrainBenchJson(const TrainBenchResult& result);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_TRAIN_BENCH_H_
