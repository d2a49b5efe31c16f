// What frames take, stream by stream, beside the bound of their positions and value bits: of made-up
// differences and of real ones.
//
// The bound is the choice of the positions, log2 C(n, kept) a block with as many kept as the block has, and
// the value bits. Beside it stands the order-0 entropy of the gap bytes: what coding each by itself, its
// table for nothing, could reach at best. Of positions spread by chance it is up to 0.12 of a bit above
// the bound; below the bound they cluster, or gaps are too few to tell.
#ifndef ISTHMUS_GPU_FRAME_SIZES_H_
#define ISTHMUS_GPU_FRAME_SIZES_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/layout.h"

namespace isthmus {

inline constexpr int64_t kFullFrame = 1 << 24;  // values from which on the limits hold

// Figures of all frames of one k and value bits together, in bits per kept value where nothing is said.
struct FrameSizeRow {
  int k = 0, value_bits = 0;
  double positions = 0, positions_bound = 0;
  double gap_entropy = 0;                   // order-0, of the gap bytes of all frames together
  double values = 0, levels = 0, rest = 0;  // rest: table, spec and envelope
  double bytes = 0;                         // of a frame, per parameter
  double worst_ratio = 0;                   // largest ratio of one frame
  double limit = 0;                         // most that a frame's total may be of the bound

  double total() const { return positions + values + levels + rest; }
  double bound() const { return positions_bound + value_bits; }
  double ratio() const { return total() / bound(); }
  double ratio_without_rest() const { return (total() - rest) / bound(); }
};

// Adds up frames of topk(k)|levels(bits).
class FrameSizeSum {
 public:
  FrameSizeSum(int k, int value_bits) : k_(k), value_bits_(value_bits) {}

  // Encodes anchor − parameters and adds the frame. INVALID_ARGUMENT, naming tensor and position: NaN or Inf.
  absl::Status Add(const Layout& layout, absl::Span<const float> anchor, absl::Span<const float> parameters);
  // FAILED_PRECONDITION: no frame kept a value.
  absl::StatusOr<FrameSizeRow> Row() const;

 private:
  // Counted over all frames: bytes, but the bound in bits.
  struct Counts {
    int64_t positions = 0, values = 0, levels = 0, rest = 0;
    int64_t kept = 0, parameters = 0;
    double bound = 0, worst_ratio = 0;
  };

  const int k_, value_bits_;
  Counts sum_;
  std::array<int64_t, 256> gap_bytes_ = {};
};

// The pairs of k and value bits that are measured, in order; `is_short`: fewer with two bits, for tests.
std::vector<FrameSizeSum> AllFrameSizeSums(bool is_short);

// Differences of a training run. Plain; whoever fills it knows where they come from.
struct RealDifferences {
  Layout layout;
  std::string set;                 // name of them all, for errors
  std::vector<std::string> names;  // of each, likewise
  // The values of one, layout.total() of them.
  std::function<absl::StatusOr<std::vector<float>>(size_t index)> load;
};

struct RealFrameSizes {
  int64_t parameters = 0, frames = 0;  // frames: encoded differences of each row
  std::vector<FrameSizeRow> rows;

  bool is_judged() const { return parameters >= kFullFrame; }
};

// Encodes every difference at every k and value bits. INVALID_ARGUMENT, naming the difference: NaN or Inf in
// it; naming the set: it is empty. FAILED_PRECONDITION, naming it: all are zeros. Else the errors of load.
absl::StatusOr<RealFrameSizes> MeasureRealFrames(const RealDifferences& differences);

}  // namespace isthmus

#endif  // ISTHMUS_GPU_FRAME_SIZES_H_
