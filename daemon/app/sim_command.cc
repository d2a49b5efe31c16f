#include "daemon/app/sim_command.h"

#include <memory>
#include <utility>

namespace isthmus {

void AddSimCommand(CommandLine* line, std::function<int(const SimFlags&)> run) {
  auto options = std::make_shared<SimFlags>();
  Command* command = line->Add("sim", "Runs the real round and membership code on fake time, to plan a run.",
                               [options, run = std::move(run)] { return run(*options); });
  command->Positional("file", &options->file, "sites, speeds, link rates and fault rates");
  command->Number("seed", &options->seed, 0, INT64_MAX,
                  "replays the run with this seed; 0: the one in the file");
  command->Flag("json", &options->is_json, "print one JSON object instead of a table");
}

}  // namespace isthmus
