// 128-bit digests (XXH3-128): whether two pieces of state are the same bits.
//
// They find accidents, not attackers.
#ifndef ISTHMUS_DAEMON_BASE_DIGEST_H_
#define ISTHMUS_DAEMON_BASE_DIGEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace isthmus {

// Canonical big-endian halves, so that text forms agree between machines.
struct Digest {
  uint64_t high = 0, low = 0;

  bool operator==(const Digest& o) const { return high == o.high && low == o.low; }
  bool operator!=(const Digest& o) const { return !(*this == o); }
  bool operator<(const Digest& o) const { return high != o.high ? high < o.high : low < o.low; }

  bool is_zero() const { return high == 0 && low == 0; }
  // 32 hexadecimal digits.
  std::string ToHex() const;
  // 16 bytes, high half first, big-endian: the form in messages and files.
  std::string ToBytes() const;
};

// INVALID_ARGUMENT unless `bytes` is 16 long (ToBytes) or empty (the zero digest).
absl::StatusOr<Digest> DigestFromBytes(absl::string_view bytes);

Digest DigestOf(absl::string_view bytes);
// Over the little-endian bytes of the values.
Digest DigestOf(absl::Span<const float> values);

// A tensor as the state digest sees it.
struct DigestTensor {
  absl::string_view name;
  std::vector<int64_t> shape;
  absl::Span<const float> values;
};

// What the digest covers beside the values (ROUNDS §8, "State digest").
struct StateStamp {
  int64_t round = 0;
  int64_t schedule_step = 0;
  uint32_t alpha_bits = 0;     // the commit's outer rate, exact fp32 bits
  uint32_t momentum_bits = 0;  // the commit's outer momentum, exact fp32 bits
};

// Digest of an anchor: version, stamp, then per tensor name, shape and the digest of its values, then
// the outer momentum's values (empty when there is none).
Digest StateDigest(const StateStamp& stamp, absl::Span<const DigestTensor> tensors,
                   absl::Span<const float> momentum);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_BASE_DIGEST_H_
