// The two flags of every daemon that say how it logs.
#ifndef ISTHMUS_DAEMON_APP_LOG_OPTIONS_H_
#define ISTHMUS_DAEMON_APP_LOG_OPTIONS_H_

#include <string>

#include "daemon/app/command_line.h"
#include "daemon/base/logging.h"

namespace isthmus {

struct LogOptions {
  std::string form = "text";   // text, json
  std::string level = "info";  // debug, info, warning, error
};

// --log-format and --log-level.
inline void AddLogFlags(Command* command, LogOptions* options) {
  command->Choice("log-format", &options->form, {"text", "json"},
                  "lines of text, or of JSON, on standard error");
  command->Choice("log-level", &options->level, {"debug", "info", "warning", "error"},
                  "the least that is logged");
}

// Once, before the first line is logged.
inline void InitLogging(const LogOptions& options) {
  LogLevel level = LogLevel::kInfo;
  // The parser let only words through that are levels.
  (void)ParseLogLevel(options.level, &level);
  InitLogging(options.form == "json" ? LogForm::kJson : LogForm::kText, level);
}

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_LOG_OPTIONS_H_
