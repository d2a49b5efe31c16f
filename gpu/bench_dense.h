// Speed of dense integers of eight bits: encode and decode beside a copy of the same size.
#ifndef ISTHMUS_GPU_BENCH_DENSE_H_
#define ISTHMUS_GPU_BENCH_DENSE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/layout.h"
#include "gpu/bench_codec.h"
#include "gpu/bench_speed_row.h"

namespace isthmus {

// On one thread: streams stored as they are, by each vector path, against memcpy of one array; and through
// zstd, whose speed is its own. Buffers are used again, as those of the copy are. Of the options: repeats,
// now. `copy` is as long as the other two, and overwritten.
absl::StatusOr<std::vector<SpeedRow>> DenseSpeedRows(const CodecBenchOptions& options, const Layout& layout,
                                                     absl::Span<const float> anchor,
                                                     absl::Span<const float> parameters,
                                                     absl::Span<float> copy);

}  // namespace isthmus

#endif  // ISTHMUS_GPU_BENCH_DENSE_H_
