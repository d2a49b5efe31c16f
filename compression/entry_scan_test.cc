#include "compression/entry_scan.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
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
  std::vector<GapExtent> extents;
  std::vector<std::vector<uint32_t>> positions;
  std::vector<std::vector<uint32_t>> codes;
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
    made.positions.emplace_back();
    made.codes.emplace_back();
    for (int i = 0; i < values; ++i) {
      if (!is_kept[i]) continue;
      gaps.Position(i);
      made.positions.back().push_back(i);
      made.codes.back().push_back(static_cast<uint32_t>(random->Below(1u << value_bits)));
      bits.Put(made.codes.back().back(), value_bits);
    }
    if (entries < kept) gaps.Position(values);
    made.extents.push_back({static_cast<uint16_t>(made.gaps.size() - begin), static_cast<uint16_t>(entries)});
  }
  bits.Finish();
  return made;
}

const uint8_t* Bytes(const std::string& s) { return reinterpret_cast<const uint8_t*>(s.data()); }

// Measures as CheckSparse does: full blocks by vector, others singly.
bool Measure(const EntryScan& scan, std::string gaps, int blocks, int kept, int values,
             std::vector<GapExtent>* extents) {
  extents->assign(blocks, {});
  const size_t size = gaps.size();
  gaps.resize(size + kStreamSlack);
  size_t at = 0;
  for (int b = 0; b < blocks;) {
    int full = 0;
    if (values == kBlockValues)
      full = scan.measure_full(Bytes(gaps) + at, size - at, kept, blocks - b, &(*extents)[b]);
    if (full == 0) {
      if (!MeasureGaps(Bytes(gaps) + at, size - at, kept, values, &(*extents)[b])) return false;
      full = 1;
    }
    for (int i = 0; i < full; ++i) at += (*extents)[b + i].bytes;
    b += full;
  }
  return at == size;
}

class EntryScanTest : public ::testing::TestWithParam<SimdPath> {
 protected:
  void SetUp() override {
    if (!HasSimdPath(GetParam())) GTEST_SKIP() << "this processor lacks " << SimdPathName(GetParam());
  }
  const EntryScan& scan() const { return EntryScanOf(GetParam()); }
};

TEST_P(EntryScanTest, WhatWasWrittenIsMeasuredUnpackedAndAdded) {
  TestRandom random(3);
  const int32_t mantissas[kMostCodes] = {100, -100, 2000, -2000, 30000, -30000, 400000, -400000};
  for (int round = 0; round < 400; ++round) {
    const int values = random.Chance(0.7) ? kBlockValues : 1 + static_cast<int>(random.Below(kBlockValues));
    const int sizes[] = {1, 2, 16, 63, 64, 65, 128, 512, 4096};
    const int kept = KeptValues(sizes[random.Below(9)], values);
    const int value_bits = 1 + static_cast<int>(random.Below(3));
    const int count = 1 + static_cast<int>(random.Below(20));
    const double short_blocks = random.Chance(0.5) ? 0 : 0.3;
    Blocks made = MakeBlocks(count, kept, values, value_bits, short_blocks, &random);
    std::vector<GapExtent> extents;
    ASSERT_TRUE(Measure(scan(), made.gaps, count, kept, values, &extents));
    made.gaps.resize(made.gaps.size() + kStreamSlack, '\x5A');  // of whatever content
    made.values.resize(made.values.size() + kStreamSlack, '\xA5');
    std::vector<PackedEntries> packed;
    const uint8_t* gaps = Bytes(made.gaps);
    size_t bit = 0;
    std::vector<int32_t> wanted(kBlockValues + 1), sums(kBlockValues + 1);
    const auto unpacked = std::make_unique<UnpackedEntries>();
    for (int b = 0; b < count; ++b) {
      ASSERT_EQ(extents[b].bytes, made.extents[b].bytes) << "round " << round << " block " << b;
      ASSERT_EQ(extents[b].entries, made.extents[b].entries);
      packed.push_back(
          {gaps, extents[b].bytes, extents[b].entries, Bytes(made.values), bit, value_bits, mantissas});
      gaps += extents[b].bytes;
      bit += static_cast<size_t>(extents[b].entries * value_bits);
      scan().unpack(packed.back(), unpacked.get());
      for (int i = 0; i < extents[b].entries; ++i) {
        ASSERT_EQ(unpacked->positions[i], made.positions[b][i]) << "round " << round << " block " << b;
        ASSERT_EQ(unpacked->mantissas[i], mantissas[made.codes[b][i]]);
        wanted[made.positions[b][i]] += mantissas[made.codes[b][i]];
      }
    }
    scan().add(packed.data(), count, {}, sums.data());
    ASSERT_EQ(sums, wanted) << "round " << round;
  }
}

TEST_P(EntryScanTest, BlocksOfDifferentValueBitsAreAddedTogether) {
  TestRandom random(4);
  const int32_t mantissas[kMostCodes] = {1, -1, 20, -20, 300, -300, 4000, -4000};
  std::vector<Blocks> made;
  for (int bits : {1, 2, 3, 1}) {
    made.push_back(MakeBlocks(1, 64, kBlockValues, bits, 0, &random));
    made.back().gaps.resize(made.back().gaps.size() + kStreamSlack);
    made.back().values.resize(made.back().values.size() + kStreamSlack);
  }
  std::vector<PackedEntries> packed;
  std::vector<int32_t> wanted(kBlockValues + 1), sums(kBlockValues + 1);
  const int bits[] = {1, 2, 3, 1};
  for (int b = 0; b < 4; ++b) {
    packed.push_back(
        {Bytes(made[b].gaps), made[b].extents[0].bytes, 64, Bytes(made[b].values), 0, bits[b], mantissas});
    for (int i = 0; i < 64; ++i) wanted[made[b].positions[0][i]] += mantissas[made[b].codes[0][i]];
  }
  scan().add(packed.data(), 4, {}, sums.data());
  EXPECT_EQ(sums, wanted);
}

// Whatever the bytes, the vector paths measure what the portable one does.
TEST_P(EntryScanTest, AnyBytesAreMeasuredAsByThePortablePath) {
  TestRandom random(5);
  for (int round = 0; round < 3000; ++round) {
    std::string gaps(1 + random.Below(400), '\0');
    const int spread = random.Chance(0.5) ? 256 : 80;
    for (char& c : gaps) c = static_cast<char>(random.Chance(0.05) ? 255 : random.Below(spread));
    const int kept = 1 + static_cast<int>(random.Below(100));
    std::vector<GapExtent> theirs, ours;
    const bool wanted = Measure(PortableEntryScan(), gaps, 4, kept, kBlockValues, &theirs);
    ASSERT_EQ(Measure(scan(), gaps, 4, kept, kBlockValues, &ours), wanted) << "round " << round;
    for (size_t i = 0; wanted && i < ours.size(); ++i) {
      ASSERT_EQ(ours[i].bytes, theirs[i].bytes);
      ASSERT_EQ(ours[i].entries, theirs[i].entries);
    }
  }
}

TEST(MeasureGapsTest, EndsOfBlocksAreJudged) {
  GapExtent extent;
  const uint8_t full[] = {3, 0, 9};
  ASSERT_TRUE(MeasureGaps(full, 3, 2, 5, &extent));  // positions 3, 4
  EXPECT_EQ(extent.bytes, 2);
  EXPECT_EQ(extent.entries, 2);
  const uint8_t early[] = {3, 1};
  ASSERT_TRUE(MeasureGaps(early, 2, 2, 5, &extent));  // 3, then the block's end
  EXPECT_EQ(extent.bytes, 2);
  EXPECT_EQ(extent.entries, 1);
  EXPECT_FALSE(MeasureGaps(early, 2, 2, 4, &extent));  // 5 passes the end
  EXPECT_FALSE(MeasureGaps(early, 1, 2, 5, &extent));  // the bytes end
  const uint8_t nothing[] = {255, 0};
  ASSERT_TRUE(MeasureGaps(nothing, 2, 2, 255, &extent));
  EXPECT_EQ(extent.bytes, 2);
  EXPECT_EQ(extent.entries, 0);
  EXPECT_FALSE(MeasureGaps(nothing, 1, 2, 255, &extent));  // an escape ends no gap
  EXPECT_FALSE(MeasureGaps(nothing, 2, 2, 254, &extent));
}

INSTANTIATE_TEST_SUITE_P(Paths, EntryScanTest, ::testing::ValuesIn(kAllSimdPaths),
                         [](const auto& info) { return SimdPathName(info.param); });

}  // namespace
}  // namespace isthmus
