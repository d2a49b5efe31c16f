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
#include "gpu/bench_speed_row.h"

namespace isthmus {

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

// OUT_OF_RANGE, naming each, when a measured ratio is below its target by more
// than a tenth of it.
absl::Status CheckSpeed(const SpeedReport& report);

}  // namespace isthmus

#endif  // ISTHMUS_GPU_BENCH_SPEED_H_
