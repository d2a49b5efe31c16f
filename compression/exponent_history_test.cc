#include "compression/exponent_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace isthmus {
namespace {

using ::testing::HasSubstr;

DecodedFrame FrameWith(std::vector<int> exponents) {
  DecodedFrame frame;
  for (int e : exponents) frame.tensors.push_back({TensorForm::kSparse, e, 20, {0}, {17}});
  return frame;
}

TEST(ExponentHistoryTest, FirstRoundIsJudgedByItsOwnMedian) {
  const ExponentHistory history;
  const DecodedFrame a = FrameWith({-20, -20}), b = FrameWith({-22, -9}), c = FrameWith({-19, -20});
  const auto found = history.Check({&a, &b, &c});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].frame, 1u);
  EXPECT_EQ(found[0].tensor, 1u);
  EXPECT_THAT(found[0].reason, HasSubstr("tensor 1: exponent -9 (values to 2^11) is implausible"));
}

TEST(ExponentHistoryTest, LaterRoundsAreJudgedByTheLargestRemembered) {
  ExponentHistory history;
  const DecodedFrame usual = FrameWith({-20}), most = FrameWith({-10}), bogus = FrameWith({-9});
  history.Committed({&usual}, {});
  EXPECT_TRUE(history.Check({&most}).empty());
  EXPECT_EQ(history.Check({&bogus}).size(), 1u);
  EXPECT_EQ(history.Check({&bogus, &bogus, &bogus}).size(), 3u);  // not even together
}

TEST(ExponentHistoryTest, RefusedTensorsAreNotRemembered) {
  ExponentHistory history;
  const DecodedFrame usual = FrameWith({-20}), bogus = FrameWith({60});
  history.Committed({&usual}, {});
  const auto refused = history.Check({&usual, &bogus});
  history.Committed({&usual, &bogus}, refused);
  EXPECT_EQ(history.Check({&bogus}).size(), 1u);
}

TEST(ExponentHistoryTest, OldRoundsAreForgottenSoThatScalesMayShrink) {
  ExponentHistory history(2);
  const DecodedFrame large = FrameWith({0}), small = FrameWith({-30}), middle = FrameWith({-10});
  history.Committed({&large}, {});
  history.Committed({&small}, {});
  EXPECT_TRUE(history.Check({&middle}).empty());
  history.Committed({&small}, {});
  EXPECT_EQ(history.Check({&middle}).size(), 1u);
}

TEST(ExponentHistoryTest, OtherMantissasAndAbsentTensorsAreComparedByTheLargestValue) {
  ExponentHistory history;
  DecodedFrame dense = FrameWith({-14}), sparse = FrameWith({-20}), absent = FrameWith({0});
  dense.tensors[0].mantissa_bits = 24;  // top bit 10, as far above as is allowed
  absent.tensors[0] = {};
  history.Committed({&absent}, {});
  history.Committed({&sparse}, {});
  EXPECT_TRUE(history.Check({&dense, &absent}).empty());
  dense.tensors[0].exponent = -13;
  EXPECT_EQ(history.Check({&absent, &dense}).size(), 1u);
}

}  // namespace
}  // namespace isthmus
