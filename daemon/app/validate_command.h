// `isthmus validate RUN_FILE`: every mistake of a run file at once, with its line; and the defaults.
#ifndef ISTHMUS_DAEMON_APP_VALIDATE_COMMAND_H_
#define ISTHMUS_DAEMON_APP_VALIDATE_COMMAND_H_

#include <functional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "daemon/app/command_line.h"

namespace isthmus {

struct ValidateOptions {
  std::string run_file;  // may be empty with show_defaults
  std::string data;      // also opened, as a worker would, when not empty
  bool show_defaults = false;
};

// Parsed options go to `run`, whose value is the exit code.
void AddValidateCommand(CommandLine* line, std::function<int(const ValidateOptions&)> run);

// Prints defaults, warnings and what the run amounts to. INVALID_ARGUMENT: no file was named, or its
// mistakes, a line for each; NOT_FOUND and the like name the file that cannot be read.
absl::Status Validate(const ValidateOptions& options, std::ostream& out);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_VALIDATE_COMMAND_H_
