#include "gpu/memory_speed.h"

#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

namespace isthmus {
namespace {

// Four floats at once and eight sums on their way: more than the memory can keep up with.
typedef float Vector __attribute__((vector_size(16)));
constexpr size_t kSums = 8;
constexpr size_t kLanes = sizeof(Vector) / sizeof(float);

Vector Load(const float* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

float AddUp(const float* a, const float* b, size_t count) {
  Vector sums[kSums] = {};
  for (size_t i = 0; i + kSums * kLanes <= count; i += kSums * kLanes) {
    for (size_t s = 0; s < kSums; ++s) sums[s] += Load(a + i + s * kLanes) + Load(b + i + s * kLanes);
  }
  float sum = 0;
  for (const Vector& lanes : sums) {
    for (size_t lane = 0; lane < kLanes; ++lane) sum += lanes[lane];
  }
  return sum;
}

}  // namespace

float ReadAndAdd(absl::Span<const float> a, absl::Span<const float> b, int threads) {
  const size_t share = a.size() / static_cast<size_t>(threads);
  std::vector<float> sums(threads);
  const auto work = [&](int t) { sums[t] = AddUp(a.data() + t * share, b.data() + t * share, share); };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work, t);
  work(0);
  for (std::thread& other : others) other.join();
  float sum = 0;
  for (float s : sums) sum += s;
  return sum;
}

void ReadAndWriteInPlace(absl::Span<float> values) {
  const Vector step = Vector{} + 1e-9f;
  for (size_t i = 0; i + kLanes <= values.size(); i += kLanes) {
    const Vector v = Load(&values[i]) + step;
    std::memcpy(&values[i], &v, sizeof v);
  }
}

}  // namespace isthmus
