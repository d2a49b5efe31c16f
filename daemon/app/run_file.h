// Reading a run file: every mistake at once with its line, defaults filled in; and comparing two of them.
#ifndef ISTHMUS_DAEMON_APP_RUN_FILE_H_
#define ISTHMUS_DAEMON_APP_RUN_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/app/run_text.h"
#include "protos/run.pb.h"

namespace isthmus {

struct RunFileReading {
  RunFile run;                       // with every default filled in
  std::vector<RunFinding> findings;  // by line

  bool has_errors() const;
};

// Never fails: what is wrong is in the findings.
RunFileReading ReadRunFile(absl::string_view text);

// "demo.run:12:3: error: model.heads: …", a line for each, as compilers write them.
std::string FindingsText(absl::string_view file_name, const std::vector<RunFinding>& findings);

// The text of a run file. NOT_FOUND, UNAVAILABLE, or INVALID_ARGUMENT for one of more than a megabyte; each
// names it.
absl::StatusOr<std::string> ReadRunText(const std::string& path);

// Reads and judges a run file on disk. INVALID_ARGUMENT: its findings, errors and warnings, as text.
// Otherwise the warnings, if any, are in `warnings` (which may be null).
absl::StatusOr<RunFile> LoadRunFile(const std::string& path, std::string* warnings);

// May a run that began with `old_run` go on with `new_run`? Both with their defaults. FAILED_PRECONDITION
// names the first field that differs, with both values. Free to differ: rounds.longest_round,
// rounds.total_rounds, rounds.total_tokens, log_level.
absl::Status CompareForRestart(const RunFile& old_run, const RunFile& new_run);

// Whether a run that is over, after `rounds` commits, may be started again on this run file.
// FAILED_PRECONDITION when its end was moved further out: what its sites carried went out with its last
// round, and their schedule has run down, so it cannot go on. Names the field with both values, and what to
// do.
absl::Status CompareForFinishedRun(const RunFile& old_run, const RunFile& new_run, int64_t rounds);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_RUN_FILE_H_
