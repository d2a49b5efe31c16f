// `isthmus sim FILE`: its flags. What it does once they are parsed is wired elsewhere.
#ifndef ISTHMUS_DAEMON_APP_SIM_COMMAND_H_
#define ISTHMUS_DAEMON_APP_SIM_COMMAND_H_

#include <cstdint>
#include <functional>
#include <string>

#include "daemon/app/command_line.h"

namespace isthmus {

struct SimFlags {
  std::string file;
  int64_t seed = 0;  // 0: the one in the file
  bool is_json = false;
};

// Parsed options go to `run`, whose value is the exit code.
void AddSimCommand(CommandLine* line, std::function<int(const SimFlags&)> run);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_SIM_COMMAND_H_
