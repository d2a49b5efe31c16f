// How near frames and updates come to their bounds, stream by stream.
//
// `isthmus bench codec` prints it. Data are seeded normal differences of independent sites, which overlap
// less than those of a real run, and for frames also differences of one where there are any; bytes are those
// of real frames and updates. The bound of a frame is frame_sizes.h's, that of an update
// compression/update_bound.h's.
#ifndef ISTHMUS_GPU_BENCH_SIZES_H_
#define ISTHMUS_GPU_BENCH_SIZES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compression/update.h"
#include "compression/update_bound.h"
#include "gpu/frame_sizes.h"

namespace isthmus {

struct SizeBenchOptions {
  int64_t frame_parameters = 1 << 24;  // the limits are those of frames of at least so many
  int64_t update_parameters = 1 << 21;
  uint64_t seed = 1;
  bool is_short = false;  // one frame and one update of each k only, for tests
};

// An update's figures, in bytes per parameter.
struct UpdateSizeRow {
  int k = 0, sites = 0;
  bool is_equal = true;  // weights: all 64, or 64, 21, 64 and so on
  Averaging averaging = Averaging::kPeers;
  double positions = 0, names = 0, literals = 0, signs = 0, rest = 0;
  UpdateBound bound;        // bytes per parameter here
  double frames_bound = 0;  // of all the included frames themselves
  double target = 0;        // most that total should be of the bound

  double total() const { return positions + names + literals + signs + rest; }
  double ratio() const { return total() / bound.total(); }
};

struct SizeReport {
  int64_t frame_parameters = 0, update_parameters = 0;
  std::vector<FrameSizeRow> frames;
  RealFrameSizes real;  // no rows: none were given
  std::vector<UpdateSizeRow> updates;

  bool is_judged() const { return frame_parameters >= kFullFrame; }  // the made-up frames
};

// All but `real`, which is MeasureRealFrames'. INVALID_ARGUMENT: fewer than 4096 parameters.
absl::StatusOr<SizeReport> RunSizeBench(const SizeBenchOptions& options);

// For people, limits beside readings, and as one JSON object. Both end in a newline.
std::string SizeTable(const SizeReport& report);
std::string SizeJson(const SizeReport& report);

// OUT_OF_RANGE, naming each, when a frame of at least 2^24 values, made-up or real, is above its limit, or an
// update above its target by more than a twentieth.
absl::Status CheckSizes(const SizeReport& report);

}  // namespace isthmus

#endif  // ISTHMUS_GPU_BENCH_SIZES_H_
