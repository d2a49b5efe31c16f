#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "compression/codec.h"
#include "compression/level_table.h"
#include "compression/reference_sum.h"
#include "compression/test_random.h"
#include "compression/update.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

DecodedTensor Sparse(int exponent, std::vector<uint32_t> positions, std::vector<int32_t> mantissas) {
  return {TensorForm::kSparse, exponent, 20, std::move(positions), std::move(mantissas)};
}

DecodedFrame FrameOf(DecodedTensor tensor) { return {{std::move(tensor)}}; }

TEST(SumFramesTest, UnionOfPositionsIsSummedAtTheLeastExponent) {
  const Layout layout({5000}, 1);
  const DecodedFrame a = FrameOf(Sparse(-3, {1, 4500}, {17, -20})), b = FrameOf(Sparse(-5, {1, 7}, {31, 17}));
  const auto update = SumFrames(layout, {{&a, 64}, {&b, 100}}, Averaging::kPeers);
  ASSERT_TRUE(update.ok());
  EXPECT_EQ(update->total_weight, 164);
  const UpdateTensor& t = update->tensors[0];
  EXPECT_EQ(t.form, TensorForm::kSparse);
  EXPECT_EQ(t.exponent, -5);
  EXPECT_EQ(t.positions, (std::vector<uint32_t>{1, 7, 4500}));
  EXPECT_EQ(t.sums, (std::vector<int64_t>{64 * 4 * 17 + 100 * 31, 100 * 17, -64 * 4 * 20}));
  EXPECT_TRUE(t.weights.empty());
  EXPECT_TRUE(t.left_out.empty());
}

TEST(SumFramesTest, ContributorsCarryTheWeightOfThoseThatSentThePosition) {
  const Layout layout({5000}, 1);
  const DecodedFrame a = FrameOf(Sparse(0, {1, 4500}, {17, -20})), b = FrameOf(Sparse(0, {1, 7}, {-17, 0}));
  const auto update = SumFrames(layout, {{&a, 64}, {&b, 64}}, Averaging::kContributors);
  ASSERT_TRUE(update.ok());
  EXPECT_EQ(update->tensors[0].positions,
            (std::vector<uint32_t>{1, 7, 4500}));  // cancelled and level zero stay
  EXPECT_EQ(update->tensors[0].sums, (std::vector<int64_t>{0, 0, -64 * 20}));
  EXPECT_EQ(update->tensors[0].weights, (std::vector<int32_t>{128, 64, 64}));
}

TEST(SumFramesTest, TensorsOver14BitsBelowTheLargestAreLeftOut) {
  const Layout layout({100}, 1);
  const DecodedFrame top = FrameOf(Sparse(10, {0}, {17})), at = FrameOf(Sparse(-4, {1}, {17})),
                     below = FrameOf(Sparse(-5, {2}, {17}));
  const auto update = SumFrames(layout, {{&below, 64}, {&top, 64}, {&at, 64}}, Averaging::kPeers);
  ASSERT_TRUE(update.ok());
  EXPECT_EQ(update->total_weight, 192);  // the left out one counts as zero
  EXPECT_EQ(update->tensors[0].exponent, -4);
  EXPECT_EQ(update->tensors[0].left_out, (std::vector<uint16_t>{0}));
  EXPECT_EQ(update->tensors[0].positions, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(update->tensors[0].sums, (std::vector<int64_t>{int64_t{64 * 17} << 14, 64 * 17}));
}

TEST(SumFramesTest, RefusedTensorsAreLeftOutAndDoNotPushOthersOut) {
  const Layout layout({100}, 1);
  const DecodedFrame bogus = FrameOf(Sparse(90, {0}, {17})), good = FrameOf(Sparse(-4, {1}, {17}));
  const auto update = SumFrames(layout, {{&bogus, 64, {0}}, {&good, 64}}, Averaging::kPeers);
  ASSERT_TRUE(update.ok());
  EXPECT_EQ(update->tensors[0].exponent, -4);
  EXPECT_EQ(update->tensors[0].left_out, (std::vector<uint16_t>{0}));
  EXPECT_EQ(update->tensors[0].positions, (std::vector<uint32_t>{1}));
}

TEST(SumFramesTest, LargestSumOf1024SitesIsBelow2To52) {
  const Layout layout({1}, 1);
  const int32_t largest = (1 << 23) - 1;
  const DecodedFrame high{{{TensorForm::kDense, 10, 24, {}, {largest}}}},
      low{{{TensorForm::kDense, 0, 24, {}, {1}}}};
  std::vector<WeightedFrame> frames(1023, {&high, 256});
  frames.push_back({&low, 256});
  const auto update = SumFrames(layout, frames, Averaging::kPeers);
  ASSERT_TRUE(update.ok());
  EXPECT_EQ(update->tensors[0].sums, (std::vector<int64_t>{(int64_t{1023} * 256 * largest << 10) + 256}));
  EXPECT_LT(update->tensors[0].sums[0], kSumLimit);
  frames.push_back({&low, 256});
  EXPECT_EQ(SumFrames(layout, frames, Averaging::kPeers).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SumFramesTest, AbsentEverywhereIsAbsent) {
  const Layout layout({10}, 1);
  const DecodedFrame none = FrameOf({});
  const auto update = SumFrames(layout, {{&none, 64}}, Averaging::kPeers);
  ASSERT_TRUE(update.ok());
  EXPECT_EQ(update->tensors[0].form, TensorForm::kAbsent);
  EXPECT_EQ(update->total_weight, 64);
}

TEST(SumFramesTest, WhatDoesNotFitIsRefusedByFrameAndTensor) {
  const Layout layout({10}, 1);
  const DecodedFrame beyond = FrameOf(Sparse(0, {10}, {17})), two{{{}, {}}}, fine = FrameOf({});
  const auto message = [&](std::vector<WeightedFrame> frames) {
    return std::string(SumFrames(layout, frames, Averaging::kPeers).status().message());
  };
  EXPECT_THAT(message({}), HasSubstr("0 frames"));
  EXPECT_THAT(message({{&fine, 64}, {&beyond, 64}}), HasSubstr("frame 1, tensor 0"));
  EXPECT_THAT(message({{&two, 64}}), HasSubstr("frame 0 has 2 tensors, the layout has 1"));
  EXPECT_THAT(message({{&fine, 15}}), HasSubstr("weight 15"));
}

// Frames of several codecs and scales, as a mixed round would have them.
class ManyFramesTest : public ::testing::Test {
 protected:
  ManyFramesTest() : layout_({5000, 130, 9000}, 1) {
    TestRandom random(11);
    for (int f = 0; f < 7; ++f) {
      const auto codec = std::move(ParseCodecSpec(f == 3  ? "dense"
                                                  : f % 2 ? "topk(k=64)"
                                                          : "topk(k=512)"))
                             .value();
      const std::vector<float> zero(layout_.total());
      const double scale = f == 5 ? 1e-9 : 0.01 * (f + 1);
      decoded_.push_back(
          *codec->Decode(layout_, *codec->Encode(layout_, zero, random.Normals(layout_.total(), scale))));
    }
    decoded_[3].tensors[2] = {};  // so that one tensor stays sparse
    for (size_t f = 0; f < decoded_.size(); ++f) {
      frames_.push_back({&decoded_[f], 16 + static_cast<int32_t>(random.Below(241))});
    }
    frames_[1].refused = {1};
  }

  const Layout layout_;
  std::vector<DecodedFrame> decoded_;
  std::vector<WeightedFrame> frames_;
};

TEST_F(ManyFramesTest, SumEqualsTheSlowWeightedFormulaInBothConventions) {
  for (Averaging averaging : {Averaging::kPeers, Averaging::kContributors}) {
    const auto update = SumFrames(layout_, frames_, averaging);
    ASSERT_TRUE(update.ok());
    EXPECT_TRUE(SameUpdate(*update, ReferenceSum(layout_, frames_, averaging)));
    EXPECT_EQ(update->tensors[0].left_out, (std::vector<uint16_t>{5}));
    EXPECT_EQ(update->tensors[1].left_out, (std::vector<uint16_t>{1, 5}));
    EXPECT_EQ(update->tensors[0].form, TensorForm::kDense);
    EXPECT_EQ(update->tensors[2].form, TensorForm::kSparse);
  }
}

TEST_F(ManyFramesTest, AThousandOrdersGiveTheSameBits) {
  const Update first = *SumFrames(layout_, frames_, Averaging::kContributors);
  std::mt19937_64 engine(5);
  for (int order = 0; order < 1000; ++order) {
    std::shuffle(frames_.begin(), frames_.end(), engine);
    Update update = *SumFrames(layout_, frames_, Averaging::kContributors);
    for (size_t t = 0; t < update.tensors.size(); ++t) {
      ASSERT_EQ(update.tensors[t].left_out.size(), first.tensors[t].left_out.size());
      update.tensors[t].left_out = first.tensors[t].left_out;  // indices into the order given
    }
    ASSERT_TRUE(SameUpdate(update, first)) << order;
  }
}

// Contributions as they lie at the hub, checked but packed, next to the same ones decoded.
class CheckedFramesTest : public ::testing::Test {
 protected:
  static constexpr int kFrames = 11;

  CheckedFramesTest() : layout_({5000, 130, 3 * 4096, 70000}, 1) {
    TestRandom random(21);
    const char* const specs[] = {"topk(k=64)", "topk(k=512)|levels(bits=2)", "topk(k=16)|levels(bits=3)",
                                 "dense", "topk(k=64)|levels(bits=auto)"};
    for (int f = 0; f < kFrames; ++f) {
      const auto codec = std::move(ParseCodecSpec(specs[f < 6 ? 0 : f - 6])).value();
      std::vector<float> theirs = random.Normals(layout_.total(), std::ldexp(0.01, f < 8 ? f % 3 : f));
      // Blocks with fewer values than they may keep, and some with none.
      for (int64_t i = 0; i < layout_.total(); ++i) {
        if (f % 3 == 1 && i % 4096 > 40) theirs[i] = 0;
        if (f % 4 == 2 && i > 30000 && i < 50000) theirs[i] = 0;
      }
      const std::string frame = *codec->Encode(layout_, std::vector<float>(layout_.total()), theirs);
      decoded_.push_back(*codec->Decode(layout_, frame));
      EXPECT_TRUE(codec->Check(layout_, frame, &checked_[f]).ok());
    }
    decoded_[9].tensors[3] = {};  // so that a large tensor stays packed everywhere
    checked_[9].decoded.tensors[3] = {};
    for (int f = 0; f < kFrames; ++f) {
      const int32_t weight = f % 2 == 0 ? 64 : 16 + static_cast<int32_t>(random.Below(241));
      frames_.push_back({&decoded_[f], weight, {}});
      packed_.push_back({nullptr, weight, {}, &checked_[f]});
    }
    frames_[2].refused = packed_[2].refused = {1, 2};
  }

  const Layout layout_;
  std::vector<DecodedFrame> decoded_;
  CheckedFrame checked_[kFrames];
  std::vector<WeightedFrame> frames_, packed_;
};

TEST_F(CheckedFramesTest, SumIsTheSameOnEveryPathAndForAnyNumberOfThreads) {
  for (size_t count : {1, 3, 6, 9, 11}) {
    const auto frames = absl::MakeConstSpan(frames_).first(count),
               packed = absl::MakeConstSpan(packed_).first(count);
    for (Averaging averaging : {Averaging::kPeers, Averaging::kContributors}) {
      const Update wanted = ReferenceSum(layout_, frames, averaging);
      for (SimdPath path : kAllSimdPaths) {
        if (!HasSimdPath(path)) continue;
        for (int threads : {1, 2, 3}) {
          const auto update = SumFrames(layout_, packed, averaging, {threads, path});
          ASSERT_TRUE(update.ok());
          EXPECT_TRUE(SameUpdate(*update, wanted))
              << SimdPathName(path) << ", " << threads << " threads, " << count;
        }
      }
    }
  }
}

TEST_F(CheckedFramesTest, AThousandOrdersAndMixturesOfPackedAndDecodedGiveTheSameBits) {
  std::vector<int> order(kFrames);
  for (int f = 0; f < kFrames; ++f) order[f] = f;
  Update first = *SumFrames(layout_, frames_, Averaging::kContributors);
  for (UpdateTensor& tensor : first.tensors) tensor.left_out.clear();  // indices into the order given
  std::mt19937_64 engine(6);
  for (int i = 0; i < 1000; ++i) {
    std::shuffle(order.begin(), order.end(), engine);
    std::vector<WeightedFrame> mixed;
    for (int f : order) mixed.push_back(engine() % 4 == 0 ? frames_[f] : packed_[f]);
    Update update = *SumFrames(layout_, mixed, Averaging::kContributors, {1 + i % 2, kAllSimdPaths[i % 3]});
    for (UpdateTensor& tensor : update.tensors) tensor.left_out.clear();
    ASSERT_TRUE(SameUpdate(update, first)) << i;
  }
}

TEST(SumPositionsTest, ValuesOfLevelZeroAndSumsThatCancelKeepTheirPositions) {
  const Layout layout({2 * 4096}, 1);
  const auto codec = std::move(ParseCodecSpec("topk(k=64)|levels(bits=1)")).value();
  TestRandom random(22);
  const std::vector<float> theirs = random.Normals(layout.total(), 1);
  std::vector<float> opposite;
  for (float v : theirs) opposite.push_back(-v);
  DecodedFrame decoded[2];
  CheckedFrame checked[2];
  for (int f = 0; f < 2; ++f) {
    const std::string frame =
        *codec->Encode(layout, std::vector<float>(layout.total()), f == 0 ? theirs : opposite);
    decoded[f] = *codec->Decode(layout, frame);
    ASSERT_TRUE(codec->Check(layout, frame, &checked[f]).ok());
    // As another encoder might: the second block's level is 0.
    checked[f].levels[1] = 0;
    std::vector<int32_t>& mantissas = decoded[f].tensors[0].mantissas;
    std::fill(mantissas.begin() + 64, mantissas.end(), 0);
  }
  for (size_t count : {1, 2}) {
    std::vector<WeightedFrame> frames, packed;
    for (size_t f = 0; f < count; ++f) {
      frames.push_back({&decoded[f], 64, {}});
      packed.push_back({nullptr, 64, {}, &checked[f]});
    }
    const Update wanted = ReferenceSum(layout, frames, Averaging::kPeers);
    EXPECT_EQ(wanted.tensors[0].positions.size(), 128u);
    EXPECT_EQ(wanted.tensors[0].sums[100], 0);
    EXPECT_EQ(wanted.tensors[0].sums[0] == 0, count == 2);
    for (SimdPath path : kAllSimdPaths) {
      if (!HasSimdPath(path)) continue;
      EXPECT_TRUE(SameUpdate(*SumFrames(layout, packed, Averaging::kPeers, {1, path}), wanted));
    }
  }
}

// Level bytes, up to kMostLevel, and weights whose products, one of them odd, add up to `sum`.
constexpr int kMostLevel = 207;
std::vector<std::pair<uint8_t, int32_t>> PartsOf(int64_t sum) {
  TestRandom random(9);
  while (true) {
    std::vector<std::pair<uint8_t, int32_t>> parts = {{1, 17}};
    for (int64_t left = sum - 17 * 17; left > 0;) {
      for (int c = 1; c <= kMostLevel; ++c) {
        const int64_t level = LevelValue(static_cast<uint8_t>(c));
        if (left % level != 0 || left / level < 16 || left / level > 256) continue;
        parts.emplace_back(c, static_cast<int32_t>(left / level));
        return parts;
      }
      // One of the larger ones that there is room for, so that the parts stay few.
      const int32_t weight = static_cast<int32_t>(16 + random.Below(241));
      int c = kMostLevel;
      while (c > 0 && LevelValue(static_cast<uint8_t>(c)) * int64_t{weight} >= left) --c;
      c -= static_cast<int>(random.Below(6));
      if (c < 1) break;
      parts.emplace_back(c, weight);
      left -= LevelValue(static_cast<uint8_t>(c)) * int64_t{weight};
    }
  }
}

// A sum's block is added in the narrowest integers that hold it, less the zero bits at its end.
TEST(SumWidthsTest, SumsAtTheEdgesOfSixteenAndThirtyTwoBitsAreExact) {
  constexpr int64_t kTo15 = int64_t{1} << 15, kTo31 = int64_t{1} << 31;
  for (int64_t unit_sum : {kTo15 - 1, kTo15, kTo15 + 1, 2 * kTo15 - 1, 2 * kTo15, kTo31 - 1, kTo31, kTo31 + 1,
                           2 * kTo31 - 1, 2 * kTo31}) {
    const auto parts = PartsOf(unit_sum);
    for (int zeros : {0, 3}) {
      std::vector<CheckedFrame> checked(parts.size());
      std::vector<WeightedFrame> frames;
      for (size_t f = 0; f < parts.size(); ++f) {
        checked[f].decoded.tensors = {{TensorForm::kSparse, -20, 20, {}, {}}};
        checked[f].placed = {{1, 0, 0, 0}};
        checked[f].counts = {2};
        checked[f].entries = {0 << 1, 1 << 1 | 1};  // the first above 0, the second below
        checked[f].entries.resize(2 + kEntrySlack);
        checked[f].levels.push_back(static_cast<char>(parts[f].first + 16 * zeros));
        frames.push_back({nullptr, parts[f].second, {}, &checked[f]});
      }
      const int64_t sum = unit_sum << zeros;
      for (SimdPath path : kAllSimdPaths) {
        if (!HasSimdPath(path)) continue;
        for (Averaging averaging : {Averaging::kPeers, Averaging::kContributors}) {
          const Update update = *SumFrames(Layout({3}, 1), frames, averaging, {1, path});
          EXPECT_EQ(update.tensors[0].positions, (std::vector<uint32_t>{0, 1}));
          EXPECT_EQ(update.tensors[0].sums, (std::vector<int64_t>{sum, -sum})) << SimdPathName(path);
        }
      }
    }
  }
}

TEST(ContributionWeightsTest, RatioToTheLowerMedianIsRoundedAndHeld) {
  EXPECT_EQ(ContributionWeights({100, 200, 300}), (std::vector<int32_t>{32, 64, 96}));
  EXPECT_EQ(ContributionWeights({100, 200}), (std::vector<int32_t>{64, 128}));
  EXPECT_EQ(ContributionWeights({1, 100, 100, 100000}), (std::vector<int32_t>{16, 64, 64, 256}));
  EXPECT_EQ(ContributionWeights({128, 129, 127, 128}), (std::vector<int32_t>{64, 65, 64, 64}));  // halves up
  EXPECT_EQ(ContributionWeights({INT64_MAX, INT64_MAX, 1}), (std::vector<int32_t>{64, 64, 16}));
  EXPECT_TRUE(ContributionWeights({}).empty());
}

}  // namespace
}  // namespace isthmus
