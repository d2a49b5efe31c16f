// `isthmus sample RUN_FILE --weights FILE`: text drawn from a trained model.
#ifndef ISTHMUS_DAEMON_APP_SAMPLE_COMMAND_H_
#define ISTHMUS_DAEMON_APP_SAMPLE_COMMAND_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/app/command_line.h"

namespace isthmus {

struct SampleOptions {
  std::string run_file;
  std::string weights;  // safetensors, as a finished run exports them
  std::string prompt = "\n";
  int64_t count = 300;
  double temperature = 0.8;
  int64_t seed = 1;
};

// Parsed options go to `run`, whose value is the exit code.
void AddSampleCommand(CommandLine* line, std::function<int(const SampleOptions&)> run);

// INVALID_ARGUMENT: run file or weights are not what they should be; NOT_FOUND: a file is not there.
absl::StatusOr<std::string> SampleFromFile(const SampleOptions& options);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_SAMPLE_COMMAND_H_
