// The cells of the learning matrix: which runs answer which question about the exchange's settings.
//
// One small model (167 k parameters), three sites, 512 tokens in an inner step of a site, one peak rate. Runs
// are of 600 inner steps, in 40 rounds of 15 or 120 of 5; of 2,000 in 400 of 5; or of 6,000 in 400 of 15.
// Every cell states k and α itself, so that results do not move with the product's defaults.
#ifndef ISTHMUS_DAEMON_TRAINING_LEARNING_CELLS_H_
#define ISTHMUS_DAEMON_TRAINING_LEARNING_CELLS_H_

#include <string>
#include <vector>

#include "daemon/training/learning_run.h"
#include "daemon/training/tensor_table.h"

namespace isthmus {

struct LearningGroup {
  std::string name;      // a word for --group
  std::string question;  // what its rows answer
};

// One row of a group's table. A case may stand in several groups; it is run once.
struct LearningCell {
  std::string group;
  std::string name;  // what distinguishes the row
  LearningCase c;    // its seed is the matrix's to set
};

// The model of all cells.
ModelShape LearningMatrixShape();

// In the order of the tables; within a group the first row is what the others are compared with.
std::vector<LearningGroup> LearningGroups();
std::vector<LearningCell> LearningCells();

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_LEARNING_CELLS_H_
