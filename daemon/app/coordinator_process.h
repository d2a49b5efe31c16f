// The coordinator daemon: run file, ledger, anchor, hub and role put together, from start to signal.
#ifndef ISTHMUS_DAEMON_APP_COORDINATOR_PROCESS_H_
#define ISTHMUS_DAEMON_APP_COORDINATOR_PROCESS_H_

#include <ostream>

#include "absl/status/status.h"
#include "daemon/app/coordinator_command.h"

namespace isthmus {

// Runs until a signal, or until the run is over when options say so. Says "listening on HOST:PORT" on `out`
// once it does. Errors name the file, field, directory or address; see exit_code.h for what they exit with.
absl::Status RunCoordinatorProcess(const CoordinatorOptions& options, std::ostream& out, std::ostream& err);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_COORDINATOR_PROCESS_H_
