// The differences that `bench learning --dump-differences` left, as the codec's bench takes them.
#ifndef ISTHMUS_DAEMON_APP_REAL_DIFFERENCES_H_
#define ISTHMUS_DAEMON_APP_REAL_DIFFERENCES_H_

#include <string>

#include "absl/status/statusor.h"
#include "gpu/frame_sizes.h"

namespace isthmus {

// Reads the index of the folder; the values are read from it when they are asked for. NOT_FOUND or
// INVALID_ARGUMENT, naming the file, for what is no such folder; the same errors from load.
absl::StatusOr<RealDifferences> OpenRealDifferences(const std::string& folder);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_REAL_DIFFERENCES_H_
