#include "gpu/frame_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace isthmus {
namespace {

using ::testing::HasSubstr;

constexpr int kSpec = 49;  // characters of topk(k=16,block=4096)|levels(bits=1)|gaps|zstd(1)

// log2 of the ways to choose k of n, factor by factor.
double Choices(int n, int k) {
  double bits = 0;
  for (int i = 0; i < k; ++i) bits += std::log2(static_cast<double>(n - i) / (i + 1));
  return bits;
}

// A block of 4096 and one of 64, twice. The first difference has 16 values with gaps of 1, 2, ... 16 in the
// one and one behind 40 others in the other block; the second has four in the one, behind gaps of 1000, 1, 7
// and 0, and nothing in the other.
RealDifferences HandMade() {
  std::vector<float> first(4160), second(4160);
  int at = -1;
  for (int gap = 1; gap <= 16; ++gap) first[at += gap + 1] = gap % 2 ? 0.5f : -0.5f;
  first[4096 + 40] = 0.5f;
  for (int position : {1000, 1002, 1010, 1011}) second[position] = 0.5f;
  RealDifferences real;
  real.layout = Layout({4096, 64}, 0);
  real.set = "set";
  real.names = {"first", "second"};
  real.load = [first, second](size_t i) { return i == 0 ? first : second; };
  return real;
}

TEST(FrameSizesTest, HandMadeDifferencesHaveTheFiguresCountedByHand) {
  const RealFrameSizes sizes = MeasureRealFrames(HandMade()).value();
  EXPECT_EQ(sizes.parameters, 4160);
  EXPECT_EQ(sizes.frames, 2);
  EXPECT_FALSE(sizes.is_judged());
  ASSERT_EQ(sizes.rows.size(), 13);
  const FrameSizeRow& row = sizes.rows[0];
  EXPECT_EQ(row.k, 16);
  EXPECT_EQ(row.value_bits, 1);
  const double kept = 17 + 4;
  // Gap bytes: 17, and 4 + 3 for the gaps and 13 for the 3084 values to the block's end; with two lengths
  // each.
  EXPECT_DOUBLE_EQ(row.positions, 8 * (2 + 17 + 2 + 20) / kept);
  EXPECT_NEAR(row.positions_bound, (Choices(4096, 16) + 6 + Choices(4096, 4)) / kept, 1e-9);
  // Of the 37 gap bytes 255 occurs fifteen times, 1 and 7 twice, 18 others once.
  const double entropy = 15 * std::log2(37 / 15.0) + 2 * 2 * std::log2(37 / 2.0) + 18 * std::log2(37.0);
  EXPECT_NEAR(row.gap_entropy, entropy / kept, 1e-9);
  EXPECT_DOUBLE_EQ(row.values, 8 * (2 + 3 + 2 + 1) / kept);
  EXPECT_DOUBLE_EQ(row.levels, 8 * (2 + 2 + 2 + 1) / kept);  // the second frame has one tensor only
  // Envelope, spec, two marks of pieces, table of a bitmap and six columns.
  const int rest_1 = 26 + 2 + kSpec + 2 + 2 + 1 + 6 * 2, rest_2 = 26 + 2 + kSpec + 2 + 2 + 1 + 6;
  EXPECT_DOUBLE_EQ(row.rest, 8 * (rest_1 + rest_2) / kept);
  EXPECT_DOUBLE_EQ(row.bytes, (19 + 22 + 8 + 7 + rest_1 + rest_2) / (2 * 4160.0));
  EXPECT_NEAR(row.ratio(), 8 * (56 + rest_1 + rest_2) / (Choices(4096, 16) + 6 + Choices(4096, 4) + kept),
              1e-9);
  EXPECT_NEAR(row.ratio_without_rest(), 8 * 56 / (Choices(4096, 16) + 6 + Choices(4096, 4) + kept), 1e-9);
  EXPECT_NEAR(row.worst_ratio, 8 * (22 + 3 + 3 + rest_2) / (Choices(4096, 4) + 4), 1e-9);
  EXPECT_EQ(row.limit, 1.06);
}

TEST(FrameSizesTest, ASecondValueBitAddsToValuesAndLevelsOnly) {
  const RealFrameSizes sizes = MeasureRealFrames(HandMade()).value();
  const FrameSizeRow &one = sizes.rows[0], &two = sizes.rows[1];
  EXPECT_EQ(two.k, 16);
  EXPECT_EQ(two.value_bits, 2);
  EXPECT_EQ(two.positions, one.positions);
  EXPECT_EQ(two.positions_bound, one.positions_bound);
  EXPECT_EQ(two.gap_entropy, one.gap_entropy);
  EXPECT_EQ(two.rest, one.rest);
  EXPECT_DOUBLE_EQ(two.values, 8 * (2 + 5 + 2 + 1) / 21.0);
  EXPECT_DOUBLE_EQ(two.levels, 8 * (2 + 4 + 2 + 2) / 21.0);
}

TEST(FrameSizesTest, EveryKHasOneAndTwoBitsAnd64ThreeWithItsLimit) {
  const RealFrameSizes sizes = MeasureRealFrames(HandMade()).value();
  std::vector<std::vector<double>> settings;
  for (const FrameSizeRow& r : sizes.rows) settings.push_back({1.0 * r.k, 1.0 * r.value_bits, r.limit});
  EXPECT_EQ(settings, (std::vector<std::vector<double>>{{16, 1, 1.06},
                                                        {16, 2, 1.06},
                                                        {32, 1, 1.06},
                                                        {32, 2, 1.06},
                                                        {64, 1, 1.04},
                                                        {64, 2, 1.04},
                                                        {64, 3, 1.06},
                                                        {128, 1, 1.04},
                                                        {128, 2, 1.04},
                                                        {256, 1, 1.04},
                                                        {256, 2, 1.04},
                                                        {512, 1, 1.04},
                                                        {512, 2, 1.04}}));
}

TEST(FrameSizesTest, DifferencesThatCannotBeEncodedAreNamed) {
  RealDifferences real = HandMade();
  const auto load = real.load;
  real.load = [load](size_t i) {
    auto values = load(i);
    if (i == 1) (*values)[7] = std::numeric_limits<float>::quiet_NaN();
    return values;
  };
  const absl::Status nan = MeasureRealFrames(real).status();
  EXPECT_EQ(nan.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(nan.message()), HasSubstr("second: "));
  real.load = [](size_t) -> absl::StatusOr<std::vector<float>> { return absl::NotFoundError("x.f32: gone"); };
  EXPECT_EQ(MeasureRealFrames(real).status(), absl::NotFoundError("x.f32: gone"));
  real.load = [](size_t) { return std::vector<float>(4160); };
  EXPECT_EQ(MeasureRealFrames(real).status(), absl::FailedPreconditionError("set: no value is other than 0"));
  real.load = [](size_t) { return std::vector<float>(4159, 1.0f); };
  EXPECT_EQ(MeasureRealFrames(real).status(), absl::InvalidArgumentError("first: 4159 values, not 4160"));
  real.names.clear();
  EXPECT_EQ(MeasureRealFrames(real).status(), absl::InvalidArgumentError("set: no differences"));
}

}  // namespace
}  // namespace isthmus
