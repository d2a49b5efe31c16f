// Seeded randomness: counter-based integers that are the same on every machine.
#ifndef ISTHMUS_DAEMON_BASE_RANDOM_H_
#define ISTHMUS_DAEMON_BASE_RANDOM_H_

#include <cstdint>

namespace isthmus {

// SplitMix64's mixing function (Steele, Lea, Flood: "Fast splittable pseudorandom number generators",
// 2014): a bijection of 64-bit integers whose outputs on a counter pass as random.
constexpr uint64_t Mix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// The number at `counter` of stream `stream` of `seed`; no state, so any part can be made anywhere.
constexpr uint64_t RandomAt(uint64_t seed, uint64_t stream, uint64_t counter) {
  return Mix64(Mix64(Mix64(seed) ^ stream) ^ counter);
}

// A sequence of numbers from one seed and stream. Not thread-safe; copy it to fork it.
class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  uint64_t Next() { return RandomAt(seed_, stream_, counter_++); }

  // Uniform in [0, n), n > 0; by the high half of the product, so biased by less than n / 2^64.
  uint64_t Below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * n) >> 64);
  }

  // Uniform in [0, 1), a multiple of 2^-53.
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

  bool Chance(double probability) { return Uniform() < probability; }

 private:
  uint64_t seed_, stream_, counter_ = 0;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_BASE_RANDOM_H_
