// Bytes by class of traffic as people read them: a line in the status, a table at the end of a run. Pure.
#ifndef ISTHMUS_DAEMON_APP_TRAFFIC_TABLE_H_
#define ISTHMUS_DAEMON_APP_TRAFFIC_TABLE_H_

#include <string>

#include "protos/status.pb.h"

namespace isthmus {

// "contribution 350 kB up; update 740 kB down; …", classes that moved; "nothing yet".
std::string TrafficLine(const RunStatus& status);

// What the hub carries when updates are encoded anew: "norm 0.0123, encoded anew by …"; empty when they are
// exact and nothing was ever carried.
std::string ResidualLine(const RunStatus& status);

// A row for each class: its spec, bytes up and down, and bytes per parameter, round and site. The last row is
// what the transport added, where one coordinator process saw the whole run. Then ResidualLine, if any.
std::string TrafficTable(const RunStatus& status);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_TRAFFIC_TABLE_H_
