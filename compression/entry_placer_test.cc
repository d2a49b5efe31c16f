#include "compression/entry_placer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "compression/bit_pack.h"
#include "compression/gap_code.h"
#include "compression/selection.h"
#include "compression/test_random.h"

namespace isthmus {
namespace {

// The streams of a few blocks, with what they were made from.
struct Blocks {
  std::string gaps, values;
  std::vector<size_t> gap_bytes;            // of each block
  std::vector<std::vector<Entry>> entries;  // likewise
};

// `kept` positions in each block, fewer in those for which `short_blocks` says so.
Blocks MakeBlocks(int count, int kept, int values, int value_bits, double short_blocks, TestRandom* random) {
  Blocks made;
  GapWriter gaps(&made.gaps);
  BitWriter bits(&made.values);
  for (int b = 0; b < count; ++b) {
    const int entries = random->Chance(short_blocks) ? 1 + static_cast<int>(random->Below(kept)) : kept;
    std::vector<bool> is_kept(values);
    // Crowded at one end now and then, so that long gaps occur.
    const int from = random->Chance(0.3) ? values - entries - (values - entries) / 8 : 0;
    for (int left = entries; left > 0;) {
      const size_t at = from + random->Below(values - from);
      left -= is_kept[at] ? 0 : 1;
      is_kept[at] = true;
    }
    const size_t begin = made.gaps.size();
    gaps.BeginRange();
    made.entries.emplace_back();
    for (int i = 0; i < values; ++i) {
      if (!is_kept[i]) continue;
      gaps.Position(i);
      const uint32_t code = static_cast<uint32_t>(random->Below(1u << value_bits));
      bits.Put(code, value_bits);
      made.entries.back().push_back(static_cast<Entry>(static_cast<uint32_t>(i) << value_bits | code));
    }
    if (entries < kept) gaps.Position(values);
    made.gap_bytes.push_back(made.gaps.size() - begin);
  }
  bits.Finish();
  return made;
}

const uint8_t* Bytes(const std::string& s) { return reinterpret_cast<const uint8_t*>(s.data()); }

// What blocks come to.
struct Placed {
  bool is_good = true;  // all blocks, and no byte is left over
  std::vector<size_t> gap_bytes;
  std::vector<std::vector<Entry>> entries;
};

// Places as CheckSparse does: full blocks by `place_full`, others singly. What follows the streams is
// garbage.
Placed PlaceAll(PlaceFullFn place_full, std::string gaps, std::string values, int blocks, int kept,
                int block_values, int value_bits) {
  const size_t size = gaps.size();
  gaps.resize(size + kStreamSlack, '\x5A');
  values.resize(values.size() + kStreamSlack, '\xA5');
  Placed placed;
  std::vector<Entry> entries(size + kEntrySlack);
  size_t at = 0, bit = 0;
  for (int b = 0; b < blocks;) {
    PlacedBlocks full;
    if (block_values == kBlockValues) {
      full = place_full({Bytes(gaps) + at, size - at, Bytes(values), bit, value_bits}, kept, blocks - b,
                        entries.data());
    }
    for (int i = 0; i < full.blocks; ++i)
      placed.entries.emplace_back(entries.begin() + i * kept, entries.begin() + (i + 1) * kept);
    placed.gap_bytes.resize(placed.gap_bytes.size() + static_cast<size_t>(full.blocks));
    at += full.gap_bytes;
    bit += static_cast<size_t>(full.blocks * kept * value_bits);
    b += full.blocks;
    if (full.blocks > 0) continue;
    const PlacedPositions one =
        PlacePositions(Bytes(gaps) + at, size - at, kept, block_values, entries.data());
    placed.is_good = placed.is_good && one.is_good;
    if (!one.is_good) return placed;
    AddCodes(Bytes(values), bit, value_bits, one.entries, entries.data());
    placed.entries.emplace_back(entries.begin(), entries.begin() + one.entries);
    placed.gap_bytes.push_back(one.gap_bytes);
    at += one.gap_bytes;
    bit += static_cast<size_t>(one.entries * value_bits);
    ++b;
  }
  placed.is_good = at == size;
  return placed;
}

class EntryPlacerTest : public ::testing::TestWithParam<SimdPath> {
 protected:
  void SetUp() override {
    if (!HasSimdPath(GetParam())) GTEST_SKIP() << "this processor lacks " << SimdPathName(GetParam());
  }
  PlaceFullFn place_full() const { return PlaceFullOf(GetParam()); }
};

TEST_P(EntryPlacerTest, WhatWasWrittenIsPlaced) {
  TestRandom random(3);
  for (int round = 0; round < 600; ++round) {
    const int values = random.Chance(0.7) ? kBlockValues : 1 + static_cast<int>(random.Below(kBlockValues));
    const int sizes[] = {1, 2, 16, 63, 64, 65, 128, 512, 4096};
    const int kept = KeptValues(sizes[random.Below(9)], values);
    const int value_bits = 1 + static_cast<int>(random.Below(3));
    const int count = 1 + static_cast<int>(random.Below(40));
    const double short_blocks = random.Chance(0.5) ? 0 : 0.3;
    const Blocks made = MakeBlocks(count, kept, values, value_bits, short_blocks, &random);
    const Placed placed = PlaceAll(place_full(), made.gaps, made.values, count, kept, values, value_bits);
    ASSERT_TRUE(placed.is_good) << "round " << round;
    ASSERT_EQ(placed.entries, made.entries) << "round " << round;
    for (int b = 0; b < count; ++b) {
      // Those placed many at a time have no length of their own.
      if (placed.gap_bytes[b] == 0) continue;
      ASSERT_EQ(placed.gap_bytes[b], made.gap_bytes[b]) << "round " << round;
    }
  }
}

// The vector paths must have taken what they are for, or the test above would say nothing of them.
TEST_P(EntryPlacerTest, FullBlocksArePlacedManyAtATime) {
  TestRandom random(6);
  for (int kept : {1, 16, 64, 100, 512}) {
    Blocks made = MakeBlocks(50, kept, kBlockValues, 1, 0, &random);
    const size_t size = made.gaps.size();
    made.gaps.resize(size + kStreamSlack);
    made.values.resize(made.values.size() + kStreamSlack);
    std::vector<Entry> entries(size + kEntrySlack);
    const PlacedBlocks placed =
        place_full()({Bytes(made.gaps), size, Bytes(made.values), 0, 1}, kept, 50, entries.data());
    const int near_the_end = 64 / kept + 1;  // blocks of the last 64 bytes may be left to others
    EXPECT_GE(placed.blocks, 50 - near_the_end) << "kept " << kept;
  }
}

// Whatever the bytes, the vector paths place what the portable one does.
TEST_P(EntryPlacerTest, AnyBytesArePlacedAsByThePortablePath) {
  TestRandom random(5);
  int good = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string gaps(1 + random.Below(random.Chance(0.1) ? 9000 : 400), '\0');
    const int spread = random.Chance(0.5) ? 256 : 1 + static_cast<int>(random.Below(80));
    const double escapes = random.Chance(0.1) ? 0.9 : 0.05;
    for (char& c : gaps) c = static_cast<char>(random.Chance(escapes) ? 255 : random.Below(spread));
    // A run of escapes that adds up to 2^16 looks like none.
    if (random.Chance(0.05)) gaps.insert(random.Below(gaps.size()), std::string(257, '\xFF'));
    const int kept = 1 + static_cast<int>(random.Below(random.Chance(0.1) ? 4096 : 100));
    const int value_bits = 1 + static_cast<int>(random.Below(3));
    const int blocks = static_cast<int>(gaps.size()) / kept + 1;
    const std::string values(3 * gaps.size() / 8 + 1, '\x35');
    const Placed wanted = PlaceAll(PlaceFullPortable, gaps, values, blocks, kept, kBlockValues, value_bits);
    const Placed placed = PlaceAll(place_full(), gaps, values, blocks, kept, kBlockValues, value_bits);
    ASSERT_EQ(placed.is_good, wanted.is_good) << "round " << round;
    ASSERT_EQ(placed.entries, wanted.entries) << "round " << round;
    good += wanted.entries.size() > 1;
  }
  EXPECT_GT(good, 1000);
}

TEST(PlacePositionsTest, EndsOfBlocksAreJudged) {
  Entry positions[4 + kEntrySlack];
  const uint8_t full[] = {3, 0, 9};
  PlacedPositions placed = PlacePositions(full, 3, 2, 5, positions);
  ASSERT_TRUE(placed.is_good);
  EXPECT_EQ(placed.gap_bytes, 2u);
  ASSERT_EQ(placed.entries, 2);
  EXPECT_EQ(positions[0], 3);
  EXPECT_EQ(positions[1], 4);
  const uint8_t early[] = {3, 1};
  placed = PlacePositions(early, 2, 2, 5, positions);  // 3, then the block's end
  ASSERT_TRUE(placed.is_good);
  EXPECT_EQ(placed.gap_bytes, 2u);
  EXPECT_EQ(placed.entries, 1);
  EXPECT_FALSE(PlacePositions(early, 2, 2, 4, positions).is_good);  // 5 passes the end
  EXPECT_FALSE(PlacePositions(early, 1, 2, 5, positions).is_good);  // the bytes end
  const uint8_t nothing[] = {255, 0};
  placed = PlacePositions(nothing, 2, 2, 255, positions);
  ASSERT_TRUE(placed.is_good);
  EXPECT_EQ(placed.gap_bytes, 2u);
  EXPECT_EQ(placed.entries, 0);
  EXPECT_FALSE(PlacePositions(nothing, 1, 2, 255, positions).is_good);  // an escape ends no gap
  EXPECT_FALSE(PlacePositions(nothing, 2, 2, 254, positions).is_good);
  EXPECT_FALSE(PlacePositions(nothing, 0, 2, 254, positions).is_good);
}

INSTANTIATE_TEST_SUITE_P(Paths, EntryPlacerTest, ::testing::ValuesIn(kAllSimdPaths),
                         [](const auto& info) { return SimdPathName(info.param); });

}  // namespace
}  // namespace isthmus
