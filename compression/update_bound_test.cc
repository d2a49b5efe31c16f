#include "compression/update_bound.h"

#include <gtest/gtest.h>

#include <cmath>

namespace isthmus {
namespace {

Update Sparse(std::vector<uint32_t> positions, std::vector<int64_t> sums, std::vector<int32_t> weights = {}) {
  Update update;
  update.averaging = weights.empty() ? Averaging::kPeers : Averaging::kContributors;
  update.total_weight = 64;
  update.tensors = {{TensorForm::kSparse, 0, std::move(positions), std::move(sums), std::move(weights), {}}};
  return update;
}

TEST(UpdateBoundTest, ChoicesAreCounted) {
  EXPECT_NEAR(ChoiceBits(4, 2), std::log2(6), 1e-9);
  EXPECT_NEAR(ChoiceBits(10, 0), 0, 1e-9);
  EXPECT_NEAR(ChoiceBits(4096, 64) / 64, 7.364, 0.001);
}

TEST(UpdateBoundTest, PositionsNamesAndSignsAreOfTheBlock) {
  // Two blocks of which the second has 4 values; one and three positions.
  const UpdateBound bound = BoundOf(Layout({4100}, 1), Sparse({7, 4096, 4097, 4099}, {5, -5, 0, 5}));
  EXPECT_NEAR(bound.positions, 12 + 2, 1e-9);
  EXPECT_NEAR(bound.names, 3 * std::log2(3) - 2, 1e-9);  // of 5, 0, 5
  EXPECT_EQ(bound.signs, 3);
  // Listed: 5 twice and 0 once, of which the second block's two in any order.
  EXPECT_NEAR(bound.literals, 3 * std::log2(3) - 2 - 1, 1e-9);
  EXPECT_DOUBLE_EQ(bound.total(), bound.positions + bound.names + bound.literals + bound.signs);
}

TEST(UpdateBoundTest, WeightsMakeMagnitudesDifferent) {
  const UpdateBound bound = BoundOf(Layout({4}, 1), Sparse({0, 1}, {5, 5}, {64, 128}));
  EXPECT_NEAR(bound.names, 2, 1e-9);
  EXPECT_NEAR(BoundOf(Layout({4}, 1), Sparse({0, 1}, {5, 5})).names, 0, 1e-9);
}

TEST(UpdateBoundTest, DenseAndAbsentTensorsCountAsNothing) {
  Update update = Sparse({}, {});
  EXPECT_EQ(BoundOf(Layout({4}, 1), update).total(), 0);
  update.tensors[0] = {TensorForm::kDense, 0, {}, {1, 2, 3, 4}, {}, {}};
  EXPECT_EQ(BoundOf(Layout({4}, 1), update).total(), 0);
}

TEST(UpdateBoundTest, FramesAreBoundedOneByOne) {
  const DecodedFrame a{{{TensorForm::kSparse, 0, 20, {1, 2}, {17, -17}}}};
  const DecodedFrame b{{{TensorForm::kSparse, 0, 20, {2}, {17}}}};
  const auto bound = BoundOfFrames(Layout({4}, 1), {{&a, 64}, {&b, 64}});
  ASSERT_TRUE(bound.ok());
  EXPECT_NEAR(bound->positions, std::log2(6) + 2, 1e-9);
  EXPECT_EQ(bound->signs, 3);
  EXPECT_FALSE(BoundOfFrames(Layout({4}, 1), {{&a, 1}}).ok());
}

}  // namespace
}  // namespace isthmus
