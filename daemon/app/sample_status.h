// A run as the status call might answer it: three sites, one of them dead, two commits. For tests of the
// views.
#ifndef ISTHMUS_DAEMON_APP_SAMPLE_STATUS_H_
#define ISTHMUS_DAEMON_APP_SAMPLE_STATUS_H_

#include "protos/status.pb.h"

namespace isthmus {

// Round 3 is open.
RunStatus SampleStatus();

// The same after its last round.
RunStatus SampleFinishedStatus();

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_SAMPLE_STATUS_H_
