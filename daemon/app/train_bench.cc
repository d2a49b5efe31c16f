#include "daemon/app/train_bench.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/app/human_units.h"
#include "daemon/app/text_table.h"
#include "daemon/base/status.h"

namespace isthmus {

absl::StatusOr<TrainBenchResult> MeasureTraining(Trainer* trainer, const TrainingData& data,
                                                 const Clock& clock, int64_t sequences_per_step, double rate,
                                                 absl::Duration length) {
  const int64_t available = data.training_sequences();
  if (available <= 0 || sequences_per_step <= 0)
    return absl::InvalidArgumentError("there is nothing to train on");
  TrainBenchResult result;
  int64_t next = 0;
  const auto step = [&]() -> absl::StatusOr<StepResult> {
    std::vector<int64_t> sequences;
    for (int64_t i = 0; i < sequences_per_step; ++i) sequences.push_back(next++ % available);
    ISTHMUS_ASSIGN_OR_RETURN(const Batch batch, data.TrainingBatch(sequences));
    return trainer->Step(batch, rate);
  };
  // The first step makes buffers and warms caches.
  ISTHMUS_ASSIGN_OR_RETURN(const StepResult first, step());
  result.first_loss = first.loss;
  const absl::Time start = clock.SteadyNow();
  do {
    ISTHMUS_ASSIGN_OR_RETURN(const StepResult taken, step());
    ++result.steps;
    result.tokens += taken.tokens;
    result.last_loss = taken.loss;
    result.seconds = absl::ToDoubleSeconds(clock.SteadyNow() - start);
  } while (result.seconds < absl::ToDoubleSeconds(length));
  return result;
}

std::string TrainBenchTable(const TrainBenchResult& result) {
  TextTable table({"steps", "seconds", "steps/s", "tokens/s", "loss before", "loss after"});
  table.AddRow({absl::StrCat(result.steps), absl::StrFormat("%.2f", result.seconds),
                absl::StrFormat("%.2f", result.steps_per_second()),
                absl::StrFormat("%.0f", result.tokens_per_second()), HumanLoss(result.first_loss),
                HumanLoss(result.last_loss)});
  return table.ToString();
}

std::string TrainBenchJson(const TrainBenchResult& result) {
  nlohmann::ordered_json json;
  json["steps"] = result.steps;
  json["tokens"] = result.tokens;
  json["seconds"] = result.seconds;
  json["steps_per_second"] = result.steps_per_second();
  json["tokens_per_second"] = result.tokens_per_second();
  json["first_loss"] = result.first_loss;
  json["last_loss"] = result.last_loss;
  return json.dump();
}

}  // namespace isthmus
