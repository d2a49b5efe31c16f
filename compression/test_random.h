// Seeded numbers for this folder's tests, which may not reach those of daemon/base. Header-only, test only.
#ifndef ISTHMUS_COMPRESSION_TEST_RANDOM_H_
#define ISTHMUS_COMPRESSION_TEST_RANDOM_H_

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace isthmus {

// The same sequence on every machine: the engine's raw output is fixed by the standard.
class TestRandom {
 public:
  explicit TestRandom(uint64_t seed) : engine_(seed) {}

  uint64_t Next() { return engine_(); }
  // In [0, n), n > 0.
  uint64_t Below(uint64_t n) { return engine_() % n; }
  // In [0, 1).
  double Uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  bool Chance(double probability) { return Uniform() < probability; }
  // About normal: twelve uniform numbers less their mean.
  double Normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += Uniform();
    return sum;
  }
  // Of density e^−|x| / 2.
  double Laplace() {
    const double magnitude = -std::log(1 - Uniform());
    return Chance(0.5) ? magnitude : -magnitude;
  }
  // Student's t: the fewer degrees, the heavier the tail.
  double StudentT(int degrees) {
    double squares = 0;
    for (int i = 0; i < degrees; ++i) {
      const double x = BoxMuller();
      squares += x * x;
    }
    return BoxMuller() / std::sqrt(squares / degrees);
  }
  // Normal, tails and all.
  double BoxMuller() {
    const double radius = std::sqrt(-2 * std::log(1 - Uniform()));
    return radius * std::cos(6.283185307179586 * Uniform());
  }
  std::vector<float> Normals(int64_t count, double scale) {
    std::vector<float> values(count);
    for (float& v : values) v = static_cast<float>(Normal() * scale);
    return values;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_TEST_RANDOM_H_
