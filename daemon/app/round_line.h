// One line for each committed round, in columns that do not move while a run goes on. Pure.
#ifndef ISTHMUS_DAEMON_APP_ROUND_LINE_H_
#define ISTHMUS_DAEMON_APP_ROUND_LINE_H_

#include <string>

#include "protos/status.pb.h"

namespace isthmus {

// The headings, without a newline.
std::string RoundLineHeadings();

// Round, members in / expected, losses, tokens per second, bytes up and down, seconds computing and waiting
// (of all sites together), the slowest site and why the round closed; without a newline.
std::string RoundLine(const CommitSummary& commit);

// A commit's reason without "round N closed: " in front, for where the round stands beside it.
std::string ReasonInRow(const CommitSummary& commit);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_ROUND_LINE_H_
