// Frames must be the same bytes from every path and for any number of threads; the portable path is the
// oracle.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
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
#include "compression/test_fillings.h"
#include "compression/test_random.h"

namespace isthmus {
namespace {

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
  if (bits == kAutoValueBits) spec.share = CodecSpec::Share::kEnergy;
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
  for (const Layout& layout : TestLayouts()) {
    std::vector<float> anchor(layout.total()), parameters(layout.total());
    for (const Filling& filling : Fillings()) {
      filling.fill(&random, &anchor, &parameters);
      for (int k : {1, 16, 64, 512, 4096}) {
        for (int bits : {1, 2, 3, kAutoValueBits}) {
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
