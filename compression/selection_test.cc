#include "compression/selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "compression/test_random.h"

namespace isthmus {
namespace {

// The rule said plainly: sort by magnitude, then by position, and take the first.
std::vector<uint16_t> SlowSelect(const std::vector<uint32_t>& magnitudes, int kept) {
  std::vector<uint16_t> order(magnitudes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint16_t a, uint16_t b) { return magnitudes[a] > magnitudes[b]; });
  order.resize(kept);
  std::sort(order.begin(), order.end());
  return order;
}

std::vector<uint16_t> Select(const std::vector<uint32_t>& magnitudes, int kept) {
  std::vector<uint16_t> positions(kept);
  std::make_unique<BlockSelector>()->Select(magnitudes, absl::MakeSpan(positions));
  return positions;
}

TEST(SelectionTest, AgreesWithASortOnManyShapesWithAndWithoutTies) {
  TestRandom random(1);
  for (int round = 0; round < 600; ++round) {
    std::vector<uint32_t> magnitudes(1 + random.Below(4096));
    const uint64_t kinds = random.Chance(0.5) ? 3 : 0x7F800000u;  // few kinds: many ties
    for (uint32_t& m : magnitudes) m = static_cast<uint32_t>(random.Below(kinds)) << (kinds == 3 ? 21 : 0);
    const int kept = 1 + static_cast<int>(random.Below(magnitudes.size()));
    ASSERT_EQ(Select(magnitudes, kept), SlowSelect(magnitudes, kept)) << "round " << round;
  }
}

TEST(SelectionTest, TiesGoToTheLowerPositions) {
  EXPECT_EQ(Select({5, 7, 5, 9, 5, 5}, 4), (std::vector<uint16_t>{0, 1, 2, 3}));
  EXPECT_EQ(Select(std::vector<uint32_t>(4096, 0), 3), (std::vector<uint16_t>{0, 1, 2}));
}

TEST(SelectionTest, ShortBlocksKeepTheirShareAndAtLeastOne) {
  EXPECT_EQ(KeptValues(64, 4096), 64);
  EXPECT_EQ(KeptValues(64, 1), 1);
  EXPECT_EQ(KeptValues(64, 95), 1);
  EXPECT_EQ(KeptValues(64, 96), 2);
  EXPECT_EQ(KeptValues(4096, 33), 33);
  for (int n = 1; n <= 4096; ++n) ASSERT_LE(KeptValues(4096, n), n);
}

}  // namespace
}  // namespace isthmus
