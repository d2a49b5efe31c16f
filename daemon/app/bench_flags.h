// The flags of `isthmus bench` and which of them go together.
#ifndef ISTHMUS_DAEMON_APP_BENCH_FLAGS_H_
#define ISTHMUS_DAEMON_APP_BENCH_FLAGS_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"

namespace isthmus {

// In each, `given`: the names of the flags that were given, without dashes.
struct CodecBenchFlags {
  std::set<std::string> given;
  std::string spec;  // empty: the built-in list, and sizes and speeds
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
  std::set<std::string> given;
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

// INVALID_ARGUMENT, naming two flags, when one would be passed over because of the other, or is of no use
// without another.
absl::Status CheckCodecFlags(const CodecBenchFlags& flags);
absl::Status CheckLearningFlags(const LearningBenchFlags& flags);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_BENCH_FLAGS_H_
