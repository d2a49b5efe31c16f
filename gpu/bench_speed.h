// How near the codec comes to the memory system: each work beside what the same threads do with the same
// buffers and no work at all, taken in turn, so that the ratio holds on a machine that is busy otherwise.
//
// `isthmus bench codec` prints it below the sizes.
#ifndef ISTHMUS_GPU_BENCH_SPEED_H_
#define ISTHMUS_GPU_BENCH_SPEED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gpu/bench_codec.h"

namespace isthmus {

// One work and what it is held against. Rates are 10^9 bytes of one fp32 array per second; best of the
// repeats.
struct SpeedRow {
  std::string work;
  std::string path;  // instruction set; one the processor lacks has no figures
  int threads = 1;
  std::string against;
  double gb_per_second = 0, against_gb_per_second = 0;
  double target = 0;  // least ratio wanted; 0: none, the row is for comparison

  bool is_measured() const { return against_gb_per_second > 0; }
  double ratio() const { return is_measured() ? gb_per_second / against_gb_per_second : 0; }
};

struct SpeedReport {
  int64_t parameters = 0;
  int threads = 1;  // of the machine
  std::vector<SpeedRow> rows;
};

// Top-k with k = 64 and one bit. Of the options: parameters, repeats, seed, now. `threads` is how many the
// rows with all cores use, at least 1. INVALID_ARGUMENT: no clock, or fewer than 4096 parameters.
absl::StatusOr<SpeedReport> RunSpeedBench(const CodecBenchOptions& options, int threads);

// For people, targets beside readings, and as one JSON object. Both end in a newline.
std::string SpeedTable(const SpeedReport& report);
std::string SpeedJson(const SpeedReport& report);

// FAILED_PRECONDITION, naming each, when a measured ratio is below its target by more
// than a tenth of it.
absl::Status CheckSpeed(const SpeedReport& report);

}  // namespace isthmus

#endif  // ISTHMUS_GPU_BENCH_SPEED_H_
