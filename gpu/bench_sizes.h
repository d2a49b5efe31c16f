// How near frames and updates come to their bounds, stream by stream.
//
// `isthmus bench codec` prints it. Data are seeded normal differences of independent sites, which overlap
// less than those of a real run; bytes are those of real frames and updates. The bound of a frame is the
// choice of its positions, log2 C(n, k) a block, and the value bits; that of an update is
// compression/update_bound.h.
#ifndef ISTHMUS_GPU_BENCH_SIZES_H_
#define ISTHMUS_GPU_BENCH_SIZES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compression/update.h"
#include "compression/update_bound.h"

namespace isthmus {

struct SizeBenchOptions {
  int64_t frame_parameters = 1 << 24;  // the limits are those of frames of at least so many
  int64_t update_parameters = 1 << 21;
  uint64_t seed = 1;
  bool is_short = false;  // one frame and one update of each k only, for tests
};

// A frame's figures, all in bits per kept value.
struct FrameSizeRow {
  int k = 0, value_bits = 0;
  double positions = 0, positions_bound = 0;
  double values = 0, levels = 0, rest = 0;  // rest: table, spec and envelope
  double limit = 0;                         // most that total may be of the bound

  double total() const { return positions + values + levels + rest; }
  double ratio() const { return total() / (positions_bound + value_bits); }
};

// An update's, in bytes per parameter.
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
  std::vector<UpdateSizeRow> updates;
};

// INVALID_ARGUMENT: fewer than 4096 parameters.
absl::StatusOr<SizeReport> RunSizeBench(const SizeBenchOptions& options);

// For people, limits beside readings, and as one JSON object. Both end in a newline.
std::string SizeTable(const SizeReport& report);
std::string SizeJson(const SizeReport& report);

// OUT_OF_RANGE, naming each, when a frame of at least 2^24 values is above its limit, or an update
// above its target by more than a twentieth.
absl::Status CheckSizes(const SizeReport& report);

}  // namespace isthmus

#endif  // ISTHMUS_GPU_BENCH_SIZES_H_
