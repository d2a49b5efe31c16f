// `isthmus coordinator RUN_FILE`: its flags. What it does once they are parsed is wired elsewhere.
#ifndef ISTHMUS_DAEMON_APP_COORDINATOR_COMMAND_H_
#define ISTHMUS_DAEMON_APP_COORDINATOR_COMMAND_H_

#include <functional>
#include <string>

#include "daemon/app/command_line.h"
#include "daemon/app/log_options.h"

namespace isthmus {

struct CoordinatorOptions {
  std::string run_file;
  std::string listen = "127.0.0.1:7700";  // HOST:PORT; port 0 takes a free one
  std::string state_dir;
  std::string init_weights;  // safetensors to begin from; empty: drawn from the run's seed
  bool is_insecure = false;
  bool exits_when_finished = false;  // instead of answering questions about it until a signal
  LogOptions log;
};

// Parsed options go to `run`, whose value is the exit code.
void AddCoordinatorCommand(CommandLine* line, std::function<int(const CoordinatorOptions&)> run);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_COORDINATOR_COMMAND_H_
