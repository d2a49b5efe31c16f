// The learning matrix: a study of the exchange's settings on the real trainer, in groups that each answer one
// question, every cell on several seeds. Results are in a LearningBook: it can be stopped and continued, and
// several processes can work on one file.
#ifndef ISTHMUS_DAEMON_TRAINING_LEARNING_MATRIX_H_
#define ISTHMUS_DAEMON_TRAINING_LEARNING_MATRIX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/training/learning_book.h"
#include "daemon/training/learning_cells.h"

namespace isthmus {

struct LearningMatrixOptions : LearningBookOptions {
  std::vector<LearningGroup> groups = LearningGroups();
  std::vector<LearningCell> cells = LearningCells();
  std::vector<std::string> only;  // names of groups; empty: all
  int64_t seeds = 3;              // 0 … seeds − 1; all cells on one before the next
};

struct LearningMatrixReport {
  std::string table;  // LearningMatrixTable
  std::string json;   // LearningMatrixJson
};

// Runs what is missing of the groups asked for, then reports on these. Cells that another process is at are
// left to it and may be missing from the report. A cell whose codec this build does not know is skipped, and
// said. INVALID_ARGUMENT: an unknown group, no seeds; else the errors of LearningBook and of the runs.
absl::StatusOr<LearningMatrixReport> RunLearningMatrix(const LearningMatrixOptions& options);

// Runs the case once and dumps what its sites are about to encode (difference_dump.h): two neighbouring
// rounds each near its start, its middle and its end. The results file is not touched. INVALID_ARGUMENT: the
// case has no rounds; else the errors of LearningBook, of DifferenceDump and of the run.
absl::Status DumpDifferencesOf(const LearningBookOptions& options, const LearningCase& c,
                               const std::string& folder);
// The same of the first cell of the first group asked for, on seed 0.
absl::Status DumpLearningDifferences(const LearningMatrixOptions& options, const std::string& folder);

// A line for every cell: group, name, the case; a line for every group before its cells.
absl::StatusOr<std::string> ListLearningCells(const LearningMatrixOptions& options);

// For each group: loss (mean and spread, largest − smallest, over the seeds), the mean difference to the
// group's first row seed by seed, and bytes per parameter of one site in a round before the last and in the
// whole run. From the lines of a results file; `setting` chooses among them. Cells without a line show "-".
std::string LearningMatrixTable(const LearningMatrixOptions& options, const std::string& setting,
                                const std::vector<std::string>& lines);
std::string LearningMatrixJson(const LearningMatrixOptions& options, const std::string& setting,
                               const std::vector<std::string>& lines);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_LEARNING_MATRIX_H_
