// What a run file leaves out (ROUNDS §10).
#ifndef ISTHMUS_DAEMON_APP_RUN_DEFAULTS_H_
#define ISTHMUS_DAEMON_APP_RUN_DEFAULTS_H_

#include <string>

#include "protos/run.pb.h"

namespace isthmus {

// Fills in every field that is absent and has a default. Left absent: the name and the end of the run, which
// have none; quorum and minimum, which follow the view; the outer rate of the PLAIN form, which follows the
// run's length.
void FillDefaults(RunFile* run);

// A table for people: every field, its default, and what it means.
std::string ShowDefaults();

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_RUN_DEFAULTS_H_
