// A data pass's seeded order of sequences, one position at a time.
#ifndef ISTHMUS_DAEMON_TRAINING_PERMUTATION_H_
#define ISTHMUS_DAEMON_TRAINING_PERMUTATION_H_

#include <cstdint>

#include "daemon/base/random.h"

namespace isthmus {

// A bijection of [0, n), the same on every machine and without a table: a four-round Feistel network over the
// next even power of two, walked until it lands inside (cycle walking: Black and Rogaway, "Ciphers with
// arbitrary finite domains", 2002). Immutable, thread-safe.
class PassPermutation {
 public:
  // n ≥ 1.
  PassPermutation(int64_t n, uint64_t seed, int64_t pass)
      : n_(n), seed_(Mix64(seed) ^ static_cast<uint64_t>(pass)) {
    while ((uint64_t{1} << (2 * half_bits_)) < static_cast<uint64_t>(n)) ++half_bits_;
  }

  // The sequence at `position`, 0 ≤ position < n.
  int64_t At(int64_t position) const {
    uint64_t x = static_cast<uint64_t>(position);
    do {
      x = Shuffle(x);
    } while (x >= static_cast<uint64_t>(n_));
    return static_cast<int64_t>(x);
  }

 private:
  uint64_t Shuffle(uint64_t x) const {
    const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
    uint64_t left = x >> half_bits_, right = x & mask;
    for (uint64_t round = 0; round < 4; ++round) {
      const uint64_t mixed = left ^ (RandomAt(seed_, round, right) & mask);
      left = right;
      right = mixed;
    }
    return left << half_bits_ | right;
  }

  int64_t n_;
  uint64_t seed_;
  int half_bits_ = 1;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_PERMUTATION_H_
