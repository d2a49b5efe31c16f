#include "daemon/app/worker_command.h"

#include <memory>
#include <utility>

namespace isthmus {

void AddWorkerCommand(CommandLine* line, std::function<int(const WorkerOptions&)> run) {
  auto options = std::make_shared<WorkerOptions>();
  Command* command = line->Add("worker", "Trains at one site and exchanges what it learns.",
                               [options, run = std::move(run)] { return run(*options); });
  command->Positional("url", &options->url, "isthmus://HOST:PORT/RUN");
  command->Text("data", &options->data, "file to train on: text, or tokens as the run file says",
                Presence::kRequired);
  command->Text("site", &options->site, "name of this site in the run; the host's name when absent");
  command->Number("max-tokens-per-second", &options->max_tokens_per_second, 0, INT64_MAX,
                  "train no faster than this, to leave the machine to others; 0: no limit");
  command->Number("threads", &options->threads, 1, 1024, "threads of the matrix library");
  command->Number("upload-bytes-per-second", &options->upload_bytes_per_second, 0, INT64_MAX,
                  "send no faster than this; 0: no limit");
  command->Duration("give-up-after", &options->give_up_after,
                    "how long to go on trying, with growing pauses, while the coordinator cannot be reached");
  command->Flag("insecure", &options->is_insecure,
                "speak plain text to another machine, on a network that can be trusted");
  command->Number("test-flip-anchor-bit-after-round", &options->flip_anchor_bit_after_round, 0, INT64_MAX,
                  "for tests: damage one bit of the anchor after this round; 0: never");
  AddLogFlags(command, &options->log);
}

}  // namespace isthmus
