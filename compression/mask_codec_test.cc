#include "compression/mask_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "compression/codec_spec.h"
#include "compression/level_table.h"
#include "compression/test_fillings.h"
#include "compression/test_random.h"

namespace isthmus {
namespace {

std::vector<uint16_t> Positions(int seed, int tensor, int64_t block, int values, int kept) {
  std::vector<uint16_t> positions(kept);
  MaskPositions(seed, tensor, block, values, absl::MakeSpan(positions));
  return positions;
}

MaskCodec MakeCodec(const char* spec) { return MaskCodec(*ParseSpecText(spec)); }

TEST(MaskCodecTest, PositionsAreThoseOfTheWrittenGenerator) {
  // Worked out apart from this program, from FORMAT.md.
  EXPECT_EQ(Positions(7, 0, 0, 4096, 4), (std::vector<uint16_t>{415, 1675, 2494, 4081}));
  EXPECT_EQ(Positions(7, 2, 5, 4096, 4), (std::vector<uint16_t>{899, 2232, 2683, 3819}));
  EXPECT_EQ(Positions(0, 0, 0, 10, 3), (std::vector<uint16_t>{1, 2, 8}));
}

TEST(MaskCodecTest, PositionsAreDistinctAscendingAndEvenlySpread) {
  std::vector<int> times(4096);
  for (int block = 0; block < 2000; ++block) {
    const std::vector<uint16_t> positions = Positions(1, 3, block, 4096, 64);
    for (size_t i = 0; i < positions.size(); ++i) {
      ASSERT_TRUE(i == 0 || positions[i - 1] < positions[i]);
      ++times[positions[i]];
    }
  }
  // 2000 · 64 / 4096 = 31.25 each, with a deviation of 5.5.
  EXPECT_GT(*std::min_element(times.begin(), times.end()), 8);
  EXPECT_LT(*std::max_element(times.begin(), times.end()), 62);
  EXPECT_NE(Positions(1, 3, 0, 4096, 64), Positions(1, 3, 1, 4096, 64));
  EXPECT_NE(Positions(1, 3, 0, 4096, 64), Positions(1, 4, 0, 4096, 64));
  EXPECT_NE(Positions(1, 3, 0, 4096, 64), Positions(2, 3, 0, 4096, 64));
  for (int values : {1, 5, 4095}) {
    std::vector<uint16_t> all(values);
    for (int i = 0; i < values; ++i) all[i] = static_cast<uint16_t>(i);
    EXPECT_EQ(Positions(1, 0, 0, values, values), all);
  }
}

TEST(MaskCodecTest, EveryShapeAndLookDecodesToTheLevelsOfTheKeptMagnitudes) {
  TestRandom random(3);
  const MaskCodec codec = MakeCodec("mask(k=64,seed=9)");
  for (const Layout& layout : TestLayouts()) {
    std::vector<float> anchor(layout.total()), parameters(layout.total());
    for (const Filling& filling : Fillings()) {
      filling.fill(&random, &anchor, &parameters);
      const auto frame = codec.Encode(layout, anchor, parameters);
      ASSERT_TRUE(frame.ok()) << filling.name << ": " << frame.status();
      const auto decoded = codec.Decode(layout, *frame);
      ASSERT_TRUE(decoded.ok()) << filling.name << ": " << decoded.status();
      for (int t = 0; t < layout.tensors(); ++t) {
        const DecodedTensor& tensor = decoded->tensors[t];
        size_t at = 0;
        for (int64_t first = 0; first < layout.size(t); first += 4096) {
          const int values = static_cast<int>(std::min<int64_t>(4096, layout.size(t) - first));
          const auto positions =
              Positions(9, t, first / 4096, values, std::max(1, (64 * values + 2048) / 4096));
          double sum = 0;
          for (uint16_t p : positions) {
            const size_t i = layout.offset(t) + first + p;
            sum += std::fabs(double{anchor[i] - parameters[i]});
          }
          const int32_t level = LevelValue(
              NearestLevel(std::ldexp(sum / static_cast<double>(positions.size()), -tensor.exponent)));
          if (level == 0 || tensor.form == TensorForm::kAbsent) continue;
          for (uint16_t p : positions) {
            ASSERT_EQ(tensor.positions[at], first + p) << filling.name;
            ASSERT_EQ(std::abs(tensor.mantissas[at]), level) << filling.name;
            const size_t i = layout.offset(t) + first + p;
            ASSERT_EQ(tensor.mantissas[at] < 0, anchor[i] - parameters[i] < 0);
            ++at;
          }
        }
        ASSERT_EQ(at, tensor.positions.size()) << filling.name;
      }
    }
  }
}

TEST(MaskCodecTest, NoPositionsAreSent) {
  const Layout layout({1 << 20}, 1);
  TestRandom random(4);
  const std::vector<float> zero(layout.total()), d = random.Normals(layout.total(), 1);
  const std::string frame = *MakeCodec("mask(k=64)").Encode(layout, zero, d);
  EXPECT_LT(frame.size(), 256 * (64 / 8 + 1) + 120);  // a bit a value and a level a block
}

#if defined(__SSE2__)
TEST(MaskCodecTest, AFloatingPointModeThatFlushesSubnormalsChangesNothing) {
  TestRandom random(9);
  const Layout layout({5000, 5}, 1);
  const std::vector<float> zero(layout.total()), d = random.Normals(layout.total(), 0x1p-140);
  const MaskCodec codec = MakeCodec("mask(k=512)|levels(bits=3)");
  const std::string expected = *codec.Encode(layout, zero, d);
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | 0x8040u);
  EXPECT_TRUE(*codec.Encode(layout, zero, d) == expected);
  _mm_setcsr(mode);
  EXPECT_EQ(codec.Decode(layout, expected)->tensors[0].form, TensorForm::kSparse);
}
#endif

}  // namespace
}  // namespace isthmus
