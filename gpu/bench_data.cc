#include "gpu/bench_data.h"

#include <algorithm>
#include <random>
#include <utility>

namespace isthmus {
namespace {

constexpr int64_t kTensorValues = 1 << 20;

}  // namespace

Layout BenchLayout(int64_t parameters) {
  std::vector<int64_t> sizes;
  for (int64_t left = parameters; left > 0; left -= kTensorValues)
    sizes.push_back(std::min(left, kTensorValues));
  return Layout(std::move(sizes), 1);
}

std::vector<float> BenchDifferences(int64_t count, uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::vector<float> values(count);
  for (float& v : values) {
    const uint64_t bits = engine();
    int64_t sum = -2 * 65535;
    for (int part = 0; part < 4; ++part) sum += static_cast<int64_t>(bits >> (16 * part) & 0xFFFF);
    v = static_cast<float>(static_cast<double>(sum) * 4.3e-8);  // fills all bits of a float
  }
  return values;
}

}  // namespace isthmus
