#include "compression/bitmap_code.h"

#include <gtest/gtest.h>

#include <vector>

#include "compression/test_random.h"

namespace isthmus {
namespace {

std::string Bitmap(const std::vector<uint32_t>& positions, int64_t values) {
  std::string out;
  AppendBitmap(positions, values, &out);
  return out;
}

TEST(BitmapCodeTest, PositionsComeBack) {
  TestRandom random(1);
  for (int64_t values : {1, 7, 8, 9, 63, 64, 65, 1000}) {
    for (double density : {0.0, 0.3, 1.0}) {
      std::vector<uint32_t> positions;
      for (uint32_t p = 0; p < values; ++p) {
        if (random.Chance(density)) positions.push_back(p);
      }
      const std::string bytes = Bitmap(positions, values);
      ASSERT_EQ(static_cast<int64_t>(bytes.size()), BitmapBytes(values));
      std::vector<uint32_t> read(positions.size());
      EXPECT_TRUE(ReadBitmap(bytes, values, absl::MakeSpan(read)));
      EXPECT_EQ(read, positions);
    }
  }
}

TEST(BitmapCodeTest, LowBitsComeFirst) { EXPECT_EQ(Bitmap({0, 3, 9}, 10), "\x09\x02"); }

TEST(BitmapCodeTest, OtherNumbersOfPositionsAndBitsPastTheEndAreRefused) {
  std::vector<uint32_t> three(3), two(2), four(4);
  EXPECT_FALSE(ReadBitmap("\x09\x02", 10, absl::MakeSpan(two)));
  EXPECT_FALSE(ReadBitmap("\x09\x02", 10, absl::MakeSpan(four)));
  EXPECT_TRUE(ReadBitmap("\x09\x02", 10, absl::MakeSpan(three)));
  EXPECT_FALSE(ReadBitmap("\x09\x04", 10, absl::MakeSpan(three)));
}

}  // namespace
}  // namespace isthmus
