// Speed of an update on its way: the hub's sum as bytes, and those bytes into a worker's anchor.
#ifndef ISTHMUS_GPU_BENCH_UPDATE_H_
#define ISTHMUS_GPU_BENCH_UPDATE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/checked_frame.h"
#include "compression/layout.h"
#include "gpu/bench_codec.h"
#include "gpu/bench_speed_row.h"

namespace isthmus {

// On one thread, against reading and writing `copy` in place; that is what the update moves. Frames count
// alike; memory is that of the round before. Of the options: repeats, now.
absl::StatusOr<std::vector<SpeedRow>> UpdateSpeedRows(const CodecBenchOptions& options, const Layout& layout,
                                                      absl::Span<const CheckedFrame> frames,
                                                      absl::Span<float> copy);

}  // namespace isthmus

#endif  // ISTHMUS_GPU_BENCH_UPDATE_H_
