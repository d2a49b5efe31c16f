#include "compression/sparse_decoder.h"

#include <gtest/gtest.h>

#include <string>

#include "compression/bit_pack.h"
#include "compression/codec_spec.h"
#include "compression/gap_code.h"

namespace isthmus {
namespace {

int64_t blocks_asked = 0, blocks_placed = 0;

PlacedBlocks CountingPlaceFull(const EntryStreams& streams, int kept, int blocks, Entry* entries) {
  const PlacedBlocks placed = PlaceFullPortable(streams, kept, blocks, entries);
  blocks_asked += blocks;
  blocks_placed += placed.blocks;
  return placed;
}

// One tensor of `blocks` blocks that keep two values each, but every `period`th only one; checked.
CheckedFrame CheckWithShortBlocks(int blocks, int period) {
  const Layout layout({blocks * kBlockValues}, 1);
  CodecSpec spec;
  spec.k = 2;
  FrameBody body;
  body.tensors.resize(1);
  body.tensors[0].form = TensorForm::kSparse;
  body.tensors[0].value_bits = 1;
  body.tensors[0].k = 2;
  GapWriter gaps(&body.gaps);
  BitWriter values(&body.values);
  for (int b = 0; b < blocks; ++b) {
    body.levels.push_back('\x10');
    gaps.BeginRange();
    gaps.Position(7);
    gaps.Position(b % period == 0 ? kBlockValues : 9);
    values.Put(1, b % period == 0 ? 1 : 2);
  }
  values.Finish();
  blocks_asked = blocks_placed = 0;
  CheckedFrame checked;
  const absl::Status status = CheckSparse(SparseLimits(spec), layout, CountingPlaceFull, &body, &checked);
  EXPECT_TRUE(status.ok()) << status;
  return checked;
}

// Vectors make the gaps of all blocks asked for ready, whether these then turn out full or not.
TEST(CheckSparseTest, ShortBlocksDoNotHaveWhatFollowsThemPlacedAgainAndAgain) {
  constexpr int kBlocks = 1000;
  for (int period : {1, 2, 3, 10, 100}) {
    const CheckedFrame checked = CheckWithShortBlocks(kBlocks, period);
    for (int b = 0; b < kBlocks; ++b) ASSERT_EQ(checked.counts[b], b % period == 0 ? 1 : 2) << b;
    EXPECT_LE(blocks_asked, 2 * kBlocks + 4 * blocks_placed) << "a short one in " << period;
  }
}

TEST(CheckSparseTest, FullBlocksAreAskedForAllAtOnceAndAgainSoonAfterAShortOne) {
  CheckWithShortBlocks(1000, 1001);  // only the first one
  EXPECT_EQ(blocks_placed, 999);
  CheckWithShortBlocks(1000, 100);
  EXPECT_EQ(blocks_placed, 990);
}

}  // namespace
}  // namespace isthmus
