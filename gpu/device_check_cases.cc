#include "gpu/device_check_cases.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "gpu/apply_cuda.h"
#include "gpu/apply_kernel.h"

namespace isthmus {
namespace {

// The arrays of one case; which are used, and how large the numbers are, is drawn too.
struct Case {
  int64_t values = 0;
  std::vector<uint32_t> positions;
  std::vector<int64_t> sums;
  std::vector<int32_t> weights, own;
  std::vector<float> anchor, momentum, parameters;
  ApplyTensorArgs args;

  // Points the args at this case's arrays, and at copies of what is written.
  ApplyTensorArgs Args(std::vector<float>* a, std::vector<float>* m, std::vector<float>* p) const {
    ApplyTensorArgs out = args;
    out.positions = positions.empty() ? nullptr : positions.data();
    out.sums = sums.empty() ? nullptr : sums.data();
    out.weights = weights.empty() ? nullptr : weights.data();
    out.own = own.empty() ? nullptr : own.data();
    out.anchor = a->data();
    out.momentum = momentum.empty() ? nullptr : m->data();
    out.parameters = parameters.empty() ? nullptr : p->data();
    return out;
  }
};

class CaseMaker {
 public:
  explicit CaseMaker(unsigned seed) : engine_(seed) {}

  Case Make() {
    Case c;
    c.values = 1 + Below(1 << (4 + Below(15)));
    if (Below(3) > 0) {
      const uint64_t density = 1 + Below(100);
      for (int64_t i = 0; i < c.values; ++i) {
        if (Below(100) < density) c.positions.push_back(static_cast<uint32_t>(i));
      }
      if (c.positions.empty()) c.positions.push_back(0);
    }
    c.args.count = c.positions.empty() ? c.values : static_cast<int64_t>(c.positions.size());
    const bool has_sums = Below(8) > 0, has_weights = Below(2) == 0, has_own = Below(2) == 0;
    for (int64_t i = 0; i < c.args.count; ++i) {
      if (has_sums) c.sums.push_back(Signed(1 + Below(52)));
      if (has_weights) c.weights.push_back(static_cast<int32_t>(Below(1 << 18)) * (Below(4) > 0));
      if (has_own) c.own.push_back(static_cast<int32_t>(Signed(24)));
    }
    const int scale = -149 + static_cast<int>(Below(200));  // subnormal results among them
    c.args.scale = std::ldexp(1.0, scale);
    c.args.own_scale = std::ldexp(1.0, -149 + static_cast<int>(Below(200)));
    c.args.total_weight = static_cast<double>(1 + Below(1 << 18));
    c.args.rate = static_cast<float>(1 + Below(32)) / 16;
    c.args.momentum_rate = static_cast<float>(Below(1000)) / 1000;
    c.anchor = Floats(c.values);
    if (Below(2) == 0) c.momentum = Floats(c.values);
    if (Below(3) > 0) c.parameters = Floats(c.values);
    return c;
  }

 private:
  uint64_t Below(uint64_t n) { return engine_() % n; }
  // Of at most `bits` bits.
  int64_t Signed(uint64_t bits) {
    const int64_t magnitude = static_cast<int64_t>(engine_() >> (64 - bits));
    return engine_() & 1 ? magnitude : -magnitude;
  }
  std::vector<float> Floats(int64_t count) {
    std::vector<float> values(count);
    const int exponent = -150 + static_cast<int>(Below(180));
    for (float& v : values)
      v = static_cast<float>(std::ldexp(static_cast<double>(Signed(30)), exponent - 30));
    return values;
  }

  std::mt19937_64 engine_;
};

// First value whose bits differ, −1 when none does.
int64_t FirstDifference(const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) return static_cast<int64_t>(i);
  }
  return -1;
}

}  // namespace

DeviceCheckResult RunDeviceCheck(int cases, unsigned seed, std::string* report) {
  if (CudaDevices() == 0) {
    *report = "no CUDA device here: nothing was compared";
    return DeviceCheckResult::kNoDevice;
  }
  CaseMaker maker(seed);
  int64_t touched = 0;
  for (int i = 0; i < cases; ++i) {
    const Case c = maker.Make();
    std::vector<float> host[3] = {c.anchor, c.momentum, c.parameters};
    std::vector<float> device[3] = {c.anchor, c.momentum, c.parameters};
    ApplyTensorOnHost(c.Args(&host[0], &host[1], &host[2]));
    const char* error = ApplyTensorOnDevice(c.Args(&device[0], &device[1], &device[2]), c.values);
    const std::string where = "case " + std::to_string(i) + " of seed " + std::to_string(seed) + ": ";
    if (error != nullptr) {
      *report = where + error;
      return DeviceCheckResult::kDiffers;
    }
    const char* names[] = {"anchor", "momentum", "parameters"};
    for (int a = 0; a < 3; ++a) {
      const int64_t at = FirstDifference(host[a], device[a]);
      if (at < 0) continue;
      char values[80];
      std::snprintf(values, sizeof values, ": host %a, device %a", host[a][at], device[a][at]);
      *report = where + names[a] + " value " + std::to_string(at) + values;
      return DeviceCheckResult::kDiffers;
    }
    touched += c.args.count;
  }
  *report = std::to_string(cases) + " cases, " + std::to_string(touched) + " touched values: the same bits";
  return DeviceCheckResult::kSame;
}

}  // namespace isthmus
