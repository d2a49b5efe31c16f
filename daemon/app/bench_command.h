// `isthmus bench codec|train|learning|differences|round`: figures of this machine, as a table and as JSON.
#ifndef ISTHMUS_DAEMON_APP_BENCH_COMMAND_H_
#define ISTHMUS_DAEMON_APP_BENCH_COMMAND_H_

#include <ostream>

#include "absl/status/status.h"
#include "daemon/app/bench_flags.h"
#include "daemon/app/command_line.h"

namespace isthmus {

// Adds `bench` and what is below it, run against the machine, printing to standard output.
void AddBenchCommands(CommandLine* line);

// Errors name what is wrong with which file or flag.
absl::Status BenchCodec(const CodecBenchFlags& options, std::ostream& out);
absl::Status BenchTrain(const TrainBenchFlags& options, std::ostream& out);
absl::Status BenchLearning(const LearningBenchFlags& options, std::ostream& out, std::ostream& progress);
absl::Status BenchDifferences(const DifferenceBenchFlags& options, std::ostream& out);
// CANCELLED: a signal came; everything it started is gone then too.
absl::Status BenchRound(const RoundBenchFlags& flags, std::ostream& out, std::ostream& progress);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_BENCH_COMMAND_H_
