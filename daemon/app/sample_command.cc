#include "daemon/app/sample_command.h"

#include <memory>
#include <utility>
#include <vector>

#include "daemon/app/run_data.h"
#include "daemon/app/run_file.h"
#include "daemon/app/run_resolve.h"
#include "daemon/base/status.h"
#include "daemon/store/blobs.h"
#include "daemon/store/snapshot.h"
#include "daemon/training/sample_text.h"
#include "daemon/training/torch_trainer.h"

namespace isthmus {

void AddSampleCommand(CommandLine* line, std::function<int(const SampleOptions&)> run) {
  auto options = std::make_shared<SampleOptions>();
  Command* command = line->Add("sample", "Prints text drawn from a trained byte-level model.",
                               [options, run = std::move(run)] { return run(*options); });
  command->Positional("run_file", &options->run_file, "the run the model was trained by");
  command->Text("weights", &options->weights, "the model, as a finished run exports it", Presence::kRequired);
  command->Text("prompt", &options->prompt, "what the text goes on from");
  command->Number("count", &options->count, 1, 1000000, "bytes to draw");
  command->Real("temperature", &options->temperature, 0.01, 100,
                "below 1 more likely text, above 1 more surprising");
  command->Number("seed", &options->seed, 0, INT64_MAX, "fixes the draw");
}

absl::StatusOr<std::string> SampleFromFile(const SampleOptions& options) {
  ISTHMUS_ASSIGN_OR_RETURN(const RunFile run, LoadRunFile(options.run_file, nullptr));
  const ModelShape shape = ModelShapeOf(run.model());
  ISTHMUS_ASSIGN_OR_RETURN(const TensorTable table, TensorTable::ForModel(shape));
  ISTHMUS_ASSIGN_OR_RETURN(const auto file, FileBlob::Open(options.weights));
  absl::StatusOr<std::vector<float>> weights = ReadWeights(table, *file);
  if (!weights.ok()) return Annotate(weights.status(), options.weights);
  ISTHMUS_ASSIGN_OR_RETURN(const auto trainer, TorchTrainer::Create(shape, InnerOptimizerOf(run.inner()),
                                                                    TorchOptions(), *weights));
  SampleTextOptions sample;
  sample.prompt = options.prompt;
  sample.characters = options.count;
  sample.temperature = options.temperature;
  sample.seed = static_cast<uint64_t>(options.seed);
  return SampleText(trainer.get(), *weights, sample);
}

}  // namespace isthmus
