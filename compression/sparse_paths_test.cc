// Frames must be the same bytes from every path and for any number of threads; the portable path is the
// oracle.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "compression/codec.h"
#include "compression/codec_spec.h"
#include "compression/simd_path.h"
#include "compression/sparse_codec.h"
#include "compression/test_random.h"

namespace isthmus {
namespace {

// One of the layouts' ways to be filled: anchors and parameters whose differences have a certain look.
struct Filling {
  const char* name;
  std::function<void(TestRandom*, std::vector<float>* anchor, std::vector<float>* parameters)> fill;
};

// Differences straight: the anchor is zero.
Filling Differences(const char* name, std::function<float(TestRandom*, size_t)> value) {
  return {name, [value](TestRandom* random, std::vector<float>* anchor, std::vector<float>* parameters) {
            for (size_t i = 0; i < anchor->size(); ++i) {
              (*anchor)[i] = 0;
              (*parameters)[i] = value(random, i);
            }
          }};
}

std::vector<Filling> Fillings() {
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

std::vector<Layout> Layouts() {
  return {Layout({}, 1),     Layout({1}, 1),          Layout({3, 63, 64, 65, 1}, 1),
          Layout({4095}, 1), Layout({4096, 4097}, 1), Layout({3 * 4096 + 1000, 5, 4096}, 1)};
}

struct Encoders {
  explicit Encoders(const CodecSpec& spec) : oracle(spec, {SimdPath::kPortable, 1}) {
    for (SimdPath path : kAllSimdPaths) {
      if (!HasSimdPath(path)) continue;
      for (int threads : {1, 3}) {
        names.push_back(std::string(SimdPathName(path)) + ", " + std::to_string(threads) + " threads");
        all.push_back(std::make_unique<SparseCodec>(spec, EncodePlan{path, threads}));
      }
    }
  }

  SparseCodec oracle;
  std::vector<std::string> names;
  std::vector<std::unique_ptr<SparseCodec>> all;
};

void ExpectSameFrames(const CodecSpec& spec, const Layout& layout, const std::vector<float>& anchor,
                      const std::vector<float>& parameters, const std::string& what) {
  const Encoders encoders(spec);
  const auto expected = encoders.oracle.Encode(layout, anchor, parameters);
  for (size_t i = 0; i < encoders.all.size(); ++i) {
    const auto frame = encoders.all[i]->Encode(layout, anchor, parameters);
    ASSERT_EQ(frame.status(), expected.status()) << encoders.names[i] << ", " << what;
    ASSERT_TRUE(!frame.ok() || *frame == *expected) << encoders.names[i] << ", " << what;
  }
}

CodecSpec Spec(int k, int bits) {
  CodecSpec spec;
  spec.k = k;
  spec.value_bits = bits;
  return spec;
}

TEST(SparsePathsTest, PathsTheProcessorLacksAreNamed) {
  for (SimdPath path : kAllSimdPaths) {
    if (HasSimdPath(path)) {
      std::cout << "exercised: " << SimdPathName(path) << "\n";
    } else {
      std::cout << "NOT EXERCISED, this processor lacks it: " << SimdPathName(path) << "\n";
    }
  }
  EXPECT_TRUE(HasSimdPath(SimdPath::kPortable));
  EXPECT_TRUE(HasSimdPath(BestSimdPath()));
}

TEST(SparsePathsTest, EveryShapeAndLookGivesTheSameFrames) {
  TestRandom random(7);
  for (const Layout& layout : Layouts()) {
    std::vector<float> anchor(layout.total()), parameters(layout.total());
    for (const Filling& filling : Fillings()) {
      filling.fill(&random, &anchor, &parameters);
      for (int k : {1, 16, 64, 512, 4096}) {
        for (int bits : {1, 2, 3}) {
          ExpectSameFrames(Spec(k, bits), layout, anchor, parameters,
                           std::string(filling.name) + ", k " + std::to_string(k) + ", bits " +
                               std::to_string(bits) + ", values " + std::to_string(layout.total()));
        }
      }
    }
  }
}

TEST(SparsePathsTest, ManyRunsOfBlocksGiveTheSameFramesForAnyThreads) {
  const Layout layout({(2 << 20) + 4096 * 3 + 17, 4096, (1 << 20) + 1}, 1);
  TestRandom random(8);
  std::vector<float> anchor(layout.total()), parameters(layout.total());
  for (size_t i = 0; i < anchor.size(); ++i) {
    // Neighbouring blocks of other scales, and blocks that send nothing.
    const int scale = static_cast<int>(i / 4096 * 2654435761u % 40);
    parameters[i] = static_cast<float>(std::ldexp(random.Uniform() - 0.5, -scale));
  }
  const std::string expected =
      *SparseCodec(Spec(64, 2), {SimdPath::kPortable, 1}).Encode(layout, anchor, parameters);
  for (SimdPath path : kAllSimdPaths) {
    if (!HasSimdPath(path)) continue;
    for (int threads : {1, 2, 5, 64}) {
      EXPECT_TRUE(*SparseCodec(Spec(64, 2), {path, threads}).Encode(layout, anchor, parameters) == expected)
          << SimdPathName(path) << ", " << threads << " threads";
    }
  }
}

TEST(SparsePathsTest, TheFirstValueThatIsNotFiniteIsNamedAndNothingTouched) {
  const Layout layout({(1 << 20) + 5000, 70, 3 << 20}, 1);
  std::vector<float> anchor(layout.total(), 1.0f), parameters(layout.total(), 0.5f);
  const size_t places[] = {
      0, 15, 4095, 4096, (1 << 20) + 4999, (1 << 20) + 5000 + 69, size_t(layout.total()) - 1};
  for (size_t at : places) {
    for (float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      parameters[at] = bad;
      parameters.back() = bad;
      const std::vector<float> before = parameters;
      ExpectSameFrames(Spec(1, 1), layout, anchor, parameters, "not finite at " + std::to_string(at));
      EXPECT_EQ(std::memcmp(before.data(), parameters.data(), sizeof(float) * before.size()), 0);
      parameters[at] = parameters.back() = 0.5f;
    }
  }
  anchor[5] = std::numeric_limits<float>::max();
  parameters[5] = -anchor[5];  // each is finite, the difference is not
  ExpectSameFrames(Spec(1, 1), layout, anchor, parameters, "overflow");
  const auto frame = std::move(ParseCodecSpec("topk(k=1)")).value()->Encode(layout, anchor, parameters);
  EXPECT_EQ(
      frame.status().message(),
      "encode: the difference of tensor 0 at position 5 is not finite (anchor finite, parameter finite)");
}

#if defined(__SSE2__)
TEST(SparsePathsTest, AFloatingPointModeThatFlushesSubnormalsChangesNothing) {
  const Layout layout({(1 << 20) + 4096, 5}, 1);
  TestRandom random(9);
  std::vector<float> anchor(layout.total()), parameters = random.Normals(layout.total(), 0x1p-140);
  const std::string expected =
      *SparseCodec(Spec(64, 1), {SimdPath::kPortable, 1}).Encode(layout, anchor, parameters);
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | 0x8040u);
  const Encoders encoders(Spec(64, 1));
  for (size_t i = 0; i < encoders.all.size(); ++i) {
    EXPECT_TRUE(*encoders.all[i]->Encode(layout, anchor, parameters) == expected) << encoders.names[i];
  }
  EXPECT_EQ(_mm_getcsr() & 0x8040u, 0x8040u);
  _mm_setcsr(mode);
}
#endif

}  // namespace
}  // namespace isthmus
