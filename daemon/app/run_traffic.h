// Codec specs of a run's classes of traffic: what each may be, and its canonical text.
#ifndef ISTHMUS_DAEMON_APP_RUN_TRAFFIC_H_
#define ISTHMUS_DAEMON_APP_RUN_TRAFFIC_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "protos/run.pb.h"

namespace isthmus {

// update_codec of a run whose updates come down as they were summed.
inline constexpr char kExactUpdates[] = "exact";

// Each with every default filled in, "auto" replaced and all settings spelled out.
struct TrafficCodecs {
  std::string contribution;
  std::string update;  // kExactUpdates or a spec
  std::string activation, activation_gradient;
  std::string snapshot;  // "fp32" or "fp32|zstd(n)"
};

// `spec` with "auto" and "k=auto" replaced by what fits a run of so many rounds. A k shorter than its word is
// filled up with blanks, so that errors still point at the right character.
std::string FillAutoCodec(absl::string_view spec, int64_t total_rounds);

// One class's canonical text. INVALID_ARGUMENT, pointing at the character: no spec, or one this class does
// not take: contributions are summed and take no carry-only codec, updates only topk (or exact), snapshots no
// lossy one. Names what the class does take.
absl::StatusOr<std::string> ResolveContributionCodec(absl::string_view spec, int64_t total_rounds);
absl::StatusOr<std::string> ResolveUpdateCodec(absl::string_view spec, int64_t total_rounds);
absl::StatusOr<std::string> ResolveActivationCodec(absl::string_view spec);
absl::StatusOr<std::string> ResolveSnapshotCodec(absl::string_view spec);

// All of them. INVALID_ARGUMENT as above, the field named.
absl::StatusOr<TrafficCodecs> ResolveTraffic(const ExchangeConfig& exchange, int64_t total_rounds);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_RUN_TRAFFIC_H_
