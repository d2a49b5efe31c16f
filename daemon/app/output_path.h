// Whether a file can be written, asked before the work whose outcome goes there.
#ifndef ISTHMUS_DAEMON_APP_OUTPUT_PATH_H_
#define ISTHMUS_DAEMON_APP_OUTPUT_PATH_H_

#include <string>

#include "absl/status/status.h"

namespace isthmus {

// OK for an empty path: nothing is to be written. FAILED_PRECONDITION, naming the path and why: a folder, one
// below no folder, not permitted. Leaves what is there as it is, and nothing behind.
absl::Status CheckOutputPath(const std::string& path);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_OUTPUT_PATH_H_
