#include "compression/sum_code.h"

#include <gtest/gtest.h>

#include "compression/test_random.h"

namespace isthmus {
namespace {

constexpr SumReader::Limits kLimits{int64_t{1} << 52, 0}, kWeighted{int64_t{1} << 52, 1000};

SumStreams<absl::string_view> Views(const SumStreams<std::string>& s) {
  return {s.tables, s.sizes, s.entries, s.literals, s.weights, s.frequencies, s.names, s.signs};
}

struct Block {
  std::vector<int64_t> sums;
  std::vector<int32_t> weights;
};

SumStreams<std::string> Written(const std::vector<Block>& blocks, int zeros = 0) {
  SumStreams<std::string> streams;
  SumWriter writer(&streams);
  for (const Block& b : blocks) writer.Block(b.sums, zeros, b.weights);
  writer.Finish();
  return streams;
}

void ExpectBack(const std::vector<Block>& blocks, int zeros = 0) {
  const SumStreams<std::string> streams = Written(blocks, zeros);
  size_t total = 0;
  for (const Block& b : blocks) total += b.sums.size();
  SumReader reader(Views(streams), total);
  for (const Block& b : blocks) {
    EXPECT_FALSE(reader.is_spent());
    std::vector<int64_t> sums(b.sums.size());
    std::vector<int32_t> weights(b.weights.size());
    ASSERT_TRUE(reader.Block(static_cast<int>(b.sums.size()), zeros, b.weights.empty() ? kLimits : kWeighted,
                             sums.data(), b.weights.empty() ? nullptr : weights.data()));
    EXPECT_EQ(sums, b.sums);
    EXPECT_EQ(weights, b.weights);
  }
  EXPECT_TRUE(reader.is_spent());
}

TEST(SumCodeTest, SumsComeBackBlockAfterBlock) {
  TestRandom random(1);
  std::vector<Block> blocks;
  for (int b = 0; b < 40; ++b) {
    Block block;
    const uint64_t distinct = b % 5 == 0 ? 1 : 2 + random.Below(30);
    for (uint64_t i = 0, n = 1 + random.Below(300); i < n; ++i) {
      const auto magnitude = static_cast<int64_t>(random.Below(distinct)) * 12;
      block.sums.push_back(random.Chance(0.5) ? magnitude : -magnitude);
    }
    blocks.push_back(block);
  }
  ExpectBack(blocks);
  ExpectBack(blocks, 2);
}

TEST(SumCodeTest, WeightsComeBackWithTheirSums) {
  TestRandom random(2);
  Block block;
  for (int i = 0; i < 4096; ++i) {
    block.sums.push_back(static_cast<int64_t>(random.Below(7)) - 3);
    block.weights.push_back(1 + static_cast<int32_t>(random.Below(5)) * 249);
  }
  ExpectBack({block, {{5}, {1000}}});
}

TEST(SumCodeTest, FourThousandMagnitudesInABlockComeBack) {
  Block block, few{{1, -1, 2}, {}};
  for (int64_t i = 0; i < 4096; ++i) block.sums.push_back(i % 2 == 0 ? i * i : -i * i);
  ExpectBack({few, block, few});
}

TEST(SumCodeTest, SumsAndDifferencesOfLiteralsArePairs) {
  // 7 and 100 are the most frequent; what two sites make of them needs no literal, but 0 does.
  const SumStreams<std::string> streams = Written({{{100, 100, 100, -7, 7, 107, -107, 93, 200, 0}, {}}});
  EXPECT_EQ(streams.literals, absl::string_view("\x0E\xBA\x01\xC7\x01", 5));  // 7, 93 more, 100 less
  EXPECT_EQ(streams.entries.size(), 6u);
  EXPECT_EQ(streams.signs.size(), 2u);  // nine sums are not zero
}

TEST(SumCodeTest, PairsAreNumberedByTheLaterLiteral) {
  SumPairs pairs;
  EXPECT_EQ(pairs.size(), 0);
  for (int64_t magnitude : {10, 300, 4000}) pairs.Add({magnitude, 1});
  EXPECT_EQ(pairs.size(), 9);
  const int64_t expected[] = {20, 310, 290, 600, 4010, 3990, 4300, 3700, 8000};
  for (int number = 0; number < 9; ++number) {
    EXPECT_EQ(pairs.Pair(number).magnitude, expected[number]) << number;
    EXPECT_EQ(pairs.Pair(number).weight, 2);
  }
  for (int i = 3; i < 20; ++i) pairs.Add({i, 1});
  EXPECT_EQ(pairs.literals(), 16);
  EXPECT_EQ(pairs.size(), 255);
}

TEST(SumCodeTest, OneMagnitudeTakesNoNames) {
  const SumStreams<std::string> streams = Written({{{9, -9, 9}, {}}, {{1}, {}}});
  EXPECT_EQ(streams.names, "");
  EXPECT_EQ(streams.tables, "");
  EXPECT_EQ(streams.frequencies, "");
}

TEST(SumCodeTest, LimitsHold) {
  const auto reads = [](const SumStreams<std::string>& streams, SumReader::Limits limits) {
    SumReader reader(Views(streams), 2);
    int64_t sums[2];
    int32_t weights[2];
    return reader.Block(2, 0, limits, sums, limits.most_weight > 0 ? weights : nullptr);
  };
  const SumStreams<std::string> plain = Written({{{40, 70}, {}}});
  EXPECT_TRUE(reads(plain, {71, 0}));
  EXPECT_FALSE(reads(plain, {70, 0}));
  const SumStreams<std::string> pair = Written({{{40, 80}, {6, 12}}});
  EXPECT_EQ(pair.literals.size(), 1u);
  EXPECT_TRUE(reads(pair, {81, 12}));
  EXPECT_FALSE(reads(pair, {80, 12}));
  EXPECT_FALSE(reads(pair, {81, 11}));
}

}  // namespace
}  // namespace isthmus
