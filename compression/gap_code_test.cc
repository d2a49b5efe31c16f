#include "compression/gap_code.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compression/test_random.h"

namespace isthmus {
namespace {

TEST(GapCodeTest, PositionsComeBackWithTheirBase) {
  std::string bytes;
  GapWriter writer(&bytes);
  writer.BeginRange();
  for (uint32_t p : {0u, 1u, 255u, 511u, 4095u}) writer.Position(p);
  bytes += std::string(40, '\0');
  GapReader reader(bytes);
  reader.BeginRange(4096);
  uint32_t out[5];
  ASSERT_EQ(reader.PositionsOrEnd(5, 8192, out), 5);
  EXPECT_EQ(std::vector<uint32_t>(out, out + 5), (std::vector<uint32_t>{8192, 8193, 8447, 8703, 12287}));
}

TEST(GapCodeTest, AGapExactlyToTheEndEndsARangeEarly) {
  std::string bytes;
  GapWriter writer(&bytes);
  for (const std::vector<uint32_t>& range : {std::vector<uint32_t>{3, 9, 300}, {299, 300}, {300}}) {
    writer.BeginRange();
    for (uint32_t p : range) writer.Position(p);
  }
  GapReader reader(bytes);
  uint32_t out[5];
  for (int positions : {2, 1, 0}) {
    reader.BeginRange(300);
    EXPECT_EQ(reader.PositionsOrEnd(5, 0, out), positions);
  }
  EXPECT_TRUE(reader.is_spent());
  GapReader past(bytes);
  past.BeginRange(299);
  EXPECT_EQ(past.PositionsOrEnd(5, 0, out), -1);
}

// Any bytes, ranges of all lengths, with and without room after the last: many positions at once are what
// asking for one after another gives, and fail where that fails.
TEST(GapCodeTest, ManyAtOnceAreTheSameAsOneByOne) {
  TestRandom random(11);
  int failures = 0, ended = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::string bytes(random.Below(60), '\0');
    for (char& b : bytes) b = static_cast<char>(random.Chance(0.2) ? 255 : random.Below(256));
    GapReader one(bytes), many(bytes);
    for (int range = 0; range < 3; ++range) {
      const uint64_t values = 1 + random.Below(5000);
      const int count = 1 + static_cast<int>(random.Below(12));
      one.BeginRange(values + 1);  // its last position stands for the end
      many.BeginRange(values);
      std::vector<uint32_t> expected(count), out(count);
      bool fits = true;
      int positions = 0;
      while (positions < count && (fits = one.Position(&expected[positions])) &&
             expected[positions] < values) {
        ++positions;
      }
      ASSERT_EQ(many.PositionsOrEnd(count, 0, out.data()), fits ? positions : -1);
      EXPECT_EQ(many.is_spent(), one.is_spent());
      ended += fits && positions < count;
      expected.resize(positions);
      out.resize(positions);
      failures += !fits;
      if (!fits) break;
      ASSERT_EQ(out, expected);
    }
  }
  EXPECT_GT(failures, 1000);
  EXPECT_LT(failures, 19000);
  EXPECT_GT(ended, 0);
}

}  // namespace
}  // namespace isthmus
