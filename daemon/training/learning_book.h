// Learning runs and their results: what is needed to make a run, and a file of JSON lines, one per finished
// run. What is in the file is not run again, so a study can be stopped and continued, and several processes
// can work on one file: each run is claimed by a lock that dies with its process.
#ifndef ISTHMUS_DAEMON_TRAINING_LEARNING_BOOK_H_
#define ISTHMUS_DAEMON_TRAINING_LEARNING_BOOK_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/base/clock.h"
#include "daemon/training/learning_run.h"
#include "daemon/training/token_file.h"

namespace isthmus {

struct LearningBookOptions {
  std::string data_path;     // plain text, read as bytes
  std::string results_path;  // JSON lines, appended to
  ModelShape shape;
  // Held-out part as the reference study has it: the last 5 %, every second sequence.
  bool is_study_split = false;
  std::function<absl::StatusOr<std::unique_ptr<Trainer>>(absl::Span<const float> initial)> make_trainer;
  Clock* clock = nullptr;                         // for the seconds in the results
  std::function<void(absl::string_view)> report;  // progress, a line at a time; may be empty
};

// The whole lines of a results file; none when it is not there.
std::vector<std::string> ReadLearningLines(const std::string& path);
// The value of `name` in one of them, without quotes; empty when it is not there.
std::string LearningField(const std::string& line, const std::string& name);
// The same as a number; infinite when it is none (a run that diverged).
double LearningNumber(const std::string& line, const std::string& name);

class LearningBook {
 public:
  // INVALID_ARGUMENT: no results file, trainer or clock. FAILED_PRECONDITION, naming file and line: the
  // results file holds a line that is none of ours. Else the data's and the model's errors.
  static absl::StatusOr<std::unique_ptr<LearningBook>> Open(const LearningBookOptions& options);

  // The line of the case, from the file or by running it; empty when another process is at it.
  // FAILED_PRECONDITION, before the run, when the results file cannot be opened for writing.
  absl::StatusOr<std::string> LineOf(const LearningCase& c);
  // The line of the case in the file; empty when it is not there.
  std::string FinishedLineOf(const LearningCase& c) const;

  // Model and data: results of other settings are not comparable.
  const std::string& setting() const { return setting_; }
  const LearningSetup& setup() const { return setup_; }

 private:
  explicit LearningBook(LearningBookOptions options) : options_(std::move(options)) {}
  absl::Status SetUp();
  void KeepEverySecond();
  absl::StatusOr<std::string> RunAndAppend(const LearningCase& c, int file);

  const LearningBookOptions options_;
  std::unique_ptr<TensorTable> table_;
  std::unique_ptr<TokenFile> data_;
  std::unique_ptr<DeviceOps> ops_;
  LearningSetup setup_;
  std::string setting_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_LEARNING_BOOK_H_
