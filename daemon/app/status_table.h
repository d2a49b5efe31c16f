// A run's status as a page of text for a person at a terminal. Pure.
#ifndef ISTHMUS_DAEMON_APP_STATUS_TABLE_H_
#define ISTHMUS_DAEMON_APP_STATUS_TABLE_H_

#include <string>

#include "protos/status.pb.h"

namespace isthmus {

// What the run is, where it stands and what it waits for; one row per site; the last `commits` commits,
// newest last. What has not been measured yet shows as "-".
std::string StatusTable(const RunStatus& status, int commits);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_STATUS_TABLE_H_
