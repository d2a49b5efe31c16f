// Differences of every look and layouts of every shape, for tests of encoders. Header-only, test only.
#ifndef ISTHMUS_COMPRESSION_TEST_FILLINGS_H_
#define ISTHMUS_COMPRESSION_TEST_FILLINGS_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "compression/layout.h"
#include "compression/test_random.h"

namespace isthmus {

// One of the layouts' ways to be filled: anchors and parameters whose differences have a certain look.
struct Filling {
  const char* name;
  std::function<void(TestRandom*, std::vector<float>* anchor, std::vector<float>* parameters)> fill;
};

// Differences straight: the anchor is zero.
inline Filling Differences(const char* name, std::function<float(TestRandom*, size_t)> value) {
  return {name, [value](TestRandom* random, std::vector<float>* anchor, std::vector<float>* parameters) {
            for (size_t i = 0; i < anchor->size(); ++i) {
              (*anchor)[i] = 0;
              (*parameters)[i] = value(random, i);
            }
          }};
}

inline std::vector<Filling> Fillings() {
  const float huge = std::numeric_limits<float>::max();
  return {
      {"near each other",
       [](TestRandom* random, std::vector<float>* anchor, std::vector<float>* parameters) {
         for (size_t i = 0; i < anchor->size(); ++i) {
           (*anchor)[i] = static_cast<float>(random->Normal());
           (*parameters)[i] = static_cast<float>((*anchor)[i] + 0.001 * random->Normal());
         }
       }},
      Differences("all zero", [](TestRandom*, size_t) { return 0.0f; }),
      Differences("zeros of both signs", [](TestRandom* r, size_t) { return r->Chance(0.5) ? 0.0f : -0.0f; }),
      Differences("subnormal only",
                  [](TestRandom* r, size_t) {
                    return static_cast<float>(0x1p-149 * std::floor(4000 * r->Normal()));
                  }),
      Differences("hardly any", [](TestRandom* r, size_t) { return r->Chance(0.001) ? -1.0f : 0.0f; }),
      Differences("one huge value",
                  [huge](TestRandom* r, size_t i) {
                    return i == 77 ? huge : static_cast<float>(1e-6 * r->Normal());
                  }),
      Differences("huge values", [huge](TestRandom* r, size_t) { return r->Chance(0.5) ? huge : -huge; }),
      Differences("scales 2^20 apart",
                  [](TestRandom* r, size_t i) {
                    return static_cast<float>(std::ldexp(r->Normal(), -20 * static_cast<int>(i / 4096 % 3)));
                  }),
      Differences("scales 2^20 apart within a block",
                  [](TestRandom* r, size_t i) {
                    return static_cast<float>(std::ldexp(r->Normal(), -20 * static_cast<int>(i % 5)));
                  }),
      Differences("many equal", [](TestRandom* r, size_t) { return static_cast<float>(r->Below(7)) - 3; }),
      Differences("all equal", [](TestRandom*, size_t) { return 0.25f; }),
      Differences("rising", [](TestRandom*, size_t i) { return static_cast<float>(i); }),
      Differences("any finite bits",
                  [](TestRandom* r, size_t) {
                    const uint32_t bits = static_cast<uint32_t>(r->Next()) & 0xBFFFFFFFu;
                    float value;
                    std::memcpy(&value, &bits, sizeof value);
                    return value;
                  }),
  };
}

// Of sizes about those of blocks, and of none.
inline std::vector<Layout> TestLayouts() {
  return {Layout({}, 1),     Layout({1}, 1),          Layout({3, 63, 64, 65, 1}, 1),
          Layout({4095}, 1), Layout({4096, 4097}, 1), Layout({3 * 4096 + 1000, 5, 4096}, 1)};
}

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_TEST_FILLINGS_H_
