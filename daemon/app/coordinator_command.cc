#include "daemon/app/coordinator_command.h"

#include <memory>
#include <utility>

namespace isthmus {

void AddCoordinatorCommand(CommandLine* line, std::function<int(const CoordinatorOptions&)> run) {
  auto options = std::make_shared<CoordinatorOptions>();
  Command* command =
      line->Add("coordinator", "Keeps a run: who is in, which round is open, what was committed.",
                [options, run = std::move(run)] { return run(*options); });
  command->Positional("run_file", &options->run_file, "the run, as protobuf text (see isthmus validate)");
  command->Text("listen", &options->listen,
                "HOST:PORT to accept workers on; port 0 takes a free one and says which");
  command->Text("state-dir", &options->state_dir,
                "folder of the run's ledger and snapshots; started again on it, the run goes on where it was",
                Presence::kRequired);
  command->Text("init", &options->init_weights,
                "safetensors file to begin from, instead of weights drawn from the seed");
  command->Flag("insecure", &options->is_insecure,
                "accept plain text from other machines, on a network that can be trusted");
  command->Flag("exit-when-finished", &options->exits_when_finished,
                "end when the run is over, instead of answering status calls until a signal");
  AddLogFlags(command, &options->log);
}

}  // namespace isthmus
