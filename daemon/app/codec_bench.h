// What the codecs make of a difference of parameters: bytes and speed, beside the published 12 + 2 bit form.
#ifndef ISTHMUS_DAEMON_APP_CODEC_BENCH_H_
#define ISTHMUS_DAEMON_APP_CODEC_BENCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compression/layout.h"
#include "daemon/base/clock.h"

namespace isthmus {

struct CodecBenchResult {
  std::string spec;
  int64_t frame_bytes = 0;
  double bytes_per_parameter = 0;
  // A position in 12 and a value in 2 bits, for the same k; 0 for codecs without a k.
  double published_bytes_per_parameter = 0;
  double encode_values_per_second = 0, decode_values_per_second = 0;  // medians
};

// Encodes and decodes seeded values (a difference whose scale varies from block to block, with heavy tails)
// with each spec, at least three times and for `length`. INVALID_ARGUMENT for a spec that is none.
absl::StatusOr<std::vector<CodecBenchResult>> MeasureCodecs(const std::vector<std::string>& specs,
                                                            const Layout& layout, uint64_t seed,
                                                            const Clock& clock, absl::Duration length);

std::string CodecBenchTable(const std::vector<CodecBenchResult>& results);
// One array on one line.
std::string CodecBenchJson(const std::vector<CodecBenchResult>& results);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_CODEC_BENCH_H_
