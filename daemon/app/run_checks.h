// Whether a run file makes sense: numbers that can be, settings that go together.
#ifndef ISTHMUS_DAEMON_APP_RUN_CHECKS_H_
#define ISTHMUS_DAEMON_APP_RUN_CHECKS_H_

#include <vector>

#include "daemon/app/run_text.h"
#include "protos/run.pb.h"

namespace isthmus {

// Appends an error for each setting with which the run could not be, and a warning for each that is likely a
// mistake, at the place of the field. `run` has its defaults; `locations` are of the text it was read from.
void CheckRun(const RunFile& run, const RunLocations& locations, std::vector<RunFinding>* findings);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_RUN_CHECKS_H_
