// What codecs cost and how fast they are: bytes per parameter beside bounds, bytes per second beside memcpy.
//
// `isthmus bench codec` prints it. Data are seeded normal differences; bytes are those of real frames and
// updates.
#ifndef ISTHMUS_GPU_BENCH_CODEC_H_
#define ISTHMUS_GPU_BENCH_CODEC_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace isthmus {

struct CodecBenchOptions {
  // Codecs to measure, one row each; empty: top-k at k = 16, 64, 512 with 1 and 2 bits, and dense.
  std::vector<std::string> specs;
  int64_t parameters = 8 << 20;  // in tensors of up to a million values
  int repeats = 5;               // the best of so many is reported
  uint64_t seed = 1;
  // Tells the time; required. Only differences are used.
  std::function<absl::Time()> now;
  // Selects the k largest differences of every block by a framework's operations, on one thread; both arrays
  // are whole blocks. Empty: the encoder is not held against it.
  std::function<absl::Status(absl::Span<const float> anchor, absl::Span<const float> parameters, int k)>
      framework_top_k;
};

// One codec's figures. Rates are 10^9 bytes of fp32 parameters per second on one thread.
struct CodecBenchRow {
  std::string spec;
  double density = 0;          // share of values sent
  double frame_bytes = 0;      // per parameter, measured
  double bound_bytes = 0;      // per parameter: log2 C(n, k) / k for a position and the value bits; dense: 3
  double published_bytes = 0;  // per parameter: the published form's 12 + 2 bits at the same k; 0: none
  double update_bytes_3_sites = 0;   // per parameter: update of 3 independent sites
  double update_bytes_16_sites = 0;  // likewise of 16
  double encode_gb_per_second = 0;
  double apply_gb_per_second = 0;   // decode, sum and apply one frame
  double memcpy_gb_per_second = 0;  // of the parameters' buffer, in the same run
};

struct CodecBenchReport {
  int64_t parameters = 0;
  std::vector<CodecBenchRow> rows;
};

// INVALID_ARGUMENT: a spec that does not parse, no clock, or fewer than 4096 parameters.
absl::StatusOr<CodecBenchReport> RunCodecBench(const CodecBenchOptions& options);

// The report for people, ratios to memcpy among it, and as one JSON object. Both end in a newline.
std::string CodecBenchTable(const CodecBenchReport& report);
std::string CodecBenchJson(const CodecBenchReport& report);

}  // namespace isthmus

#endif  // ISTHMUS_GPU_BENCH_CODEC_H_
