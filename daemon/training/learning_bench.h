// The learning comparison: synchronous AdamW, dense exchange (plain and Nesterov) and the default sparse form
// at equal tokens. Each form's learning rate is chosen from one grid on the first seed, then more seeds run
// at the best rate. Bytes and loss always come from the same run.
//
// Results are in a LearningBook: a comparison can be stopped, continued, and shared between processes by
// giving each its forms.
#ifndef ISTHMUS_DAEMON_TRAINING_LEARNING_BENCH_H_
#define ISTHMUS_DAEMON_TRAINING_LEARNING_BENCH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/training/learning_book.h"

namespace isthmus {

struct LearningBenchOptions : LearningBookOptions {
  LearningCase base;  // form, peak_rate and seed are set by the comparison
  std::vector<LearningForm> forms = {LearningForm::kSynchronous, LearningForm::kDense,
                                     LearningForm::kDenseNesterov, LearningForm::kSparse};
  std::vector<double> rates = {1.5e-3, 3e-3, 6e-3};
  int64_t seeds = 3;  // 0 … seeds − 1; the grid runs on 0
};

// Runs what is missing; returns the table of LearningTable. Errors name the run or the file.
absl::StatusOr<std::string> RunLearningBench(const LearningBenchOptions& options);

// The case in which model, data, split, rate and settings are the reference study's (LEARNING.md: model l,
// 1.84 M tokens, 3 sites, H = 15, 40 rounds, k = 512, no dense last round): its losses and ours must agree
// within seed noise. One difference stays: the study's blocks span tensors. Overwrites base, forms, rates,
// seeds, split.
LearningBenchOptions AgreementWithStudy(LearningBenchOptions options);

// Mean and spread (largest − smallest) per form at its best rate, from the lines of a results file. Lines of
// other settings than the first line's (model, data, tokens, sites, H, batch) make tables of their own.
std::string LearningTable(const std::vector<std::string>& lines);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_LEARNING_BENCH_H_
