// The worker daemon: URL, data, trainer, link and role put together, from start to signal.
#ifndef ISTHMUS_DAEMON_APP_WORKER_PROCESS_H_
#define ISTHMUS_DAEMON_APP_WORKER_PROCESS_H_

#include "absl/status/status.h"
#include "daemon/app/worker_command.h"

namespace isthmus {

// Runs until the run is over or a signal: the first one lets it contribute what it has and leave, the second
// ends it at once. Errors name the field, file or address; see exit_code.h for what they exit with.
absl::Status RunWorkerProcess(const WorkerOptions& options);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_WORKER_PROCESS_H_
