// `isthmus bench codec|train|learning|differences|round`: figures of this machine, as a table and as JSON.
#ifndef ISTHMUS_DAEMON_APP_BENCH_COMMAND_H_
#define ISTHMUS_DAEMON_APP_BENCH_COMMAND_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "daemon/app/command_line.h"

namespace isthmus {

struct CodecBenchFlags {
  std::string spec;  // empty: the built-in list
  int64_t parameters = 16 << 20;
  int64_t speed_parameters = 64 << 20;  // 256 MB of fp32: no cache holds them
  int64_t size_parameters = 16 << 20;   // the limits are those of frames of so many
  int64_t repeats = 5;
  int64_t seed = 1;
  bool is_check = false;    // fail when a speed falls short of its target, or bytes pass their limit
  std::string differences;  // folder of real ones whose frames are measured too
  std::string json_out, sizes_json_out, speed_json_out;
};

struct TrainBenchFlags {
  std::string run_file, data;
  double seconds = 5;
  int64_t threads = 1;
  bool is_rate_only = false;
  std::string json_out;
};

struct LearningBenchFlags {
  std::string data, results;
  int64_t tokens = 1000000, sequences = 4, seeds = 3;
  std::string form;                 // empty: all of them
  int64_t width = 128, layers = 4;  // of the model whose forms are compared
  int64_t kept = 0;                 // of a block, by the sparse form; 0: as the rounds ask
  bool is_agreement = false;
  bool is_matrix = false;
  std::string groups;  // of the matrix, separated by commas; empty: all
  bool is_list = false;
  std::string json_out;  // of the matrix
  std::string dump;      // folder for the differences of one run
};

struct DifferenceBenchFlags {
  std::string folder;
  std::string kept = "64,512";  // per block, separated by commas
};

struct RoundBenchFlags {
  std::string data;  // empty: made-up text
  int64_t repeats = 10, rounds = 40, inner_steps = 10, seed = 1;
  std::string part = "all";
  std::string json_out;
};

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
