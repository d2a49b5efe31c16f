#include "gpu/bench_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isthmus {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

SizeReport ShortReport() {
  SizeBenchOptions options;
  options.frame_parameters = 64 * 4096;
  options.update_parameters = 64 * 4096;
  options.is_short = true;
  return RunSizeBench(options).value();
}

TEST(BenchSizesTest, FramesStandBesideTheirBound) {
  const SizeReport report = ShortReport();
  ASSERT_EQ(report.frames.size(), 8u);
  const FrameSizeRow& row = report.frames[2];
  EXPECT_EQ(row.k, 64);
  EXPECT_EQ(row.value_bits, 1);
  EXPECT_NEAR(row.positions_bound, 7.364, 0.001);
  EXPECT_GT(row.positions, row.positions_bound);
  EXPECT_NEAR(row.values, 1, 0.02);
  EXPECT_GT(row.ratio(), 1);
  EXPECT_LT(row.ratio(), 1.1);
  EXPECT_EQ(row.limit, 1.04);
  EXPECT_EQ(report.frames[0].limit, 1.06);
  EXPECT_EQ(report.frames[4].value_bits, 3);
  EXPECT_EQ(report.frames[4].limit, 1.06);
}

TEST(BenchSizesTest, UpdatesStandBesideTheirBound) {
  const SizeReport report = ShortReport();
  ASSERT_EQ(report.updates.size(), 4u);
  const UpdateSizeRow& row = report.updates[0];
  EXPECT_EQ(row.sites, 3);
  EXPECT_TRUE(row.is_equal);
  EXPECT_GT(row.ratio(), 1);
  EXPECT_LT(row.ratio(), 1.06);
  EXPECT_GT(row.frames_bound, row.bound.total());
  EXPECT_GT(report.updates[1].names, row.names);  // unequal weights: more magnitudes
}

TEST(BenchSizesTest, WhatIsTooLargeIsNamed) {
  SizeReport report = ShortReport();
  EXPECT_TRUE(CheckSizes(report).ok());
  for (FrameSizeRow& row : report.frames) row.limit = 1.0001;
  EXPECT_TRUE(CheckSizes(report).ok());  // so small frames have no limits
  report.frame_parameters = 1 << 24;
  EXPECT_THAT(std::string(CheckSizes(report).message()), HasSubstr("frame of k=64, 2 bits"));
  report.frames.clear();
  report.updates[0].target = 0.9;
  const std::string message(CheckSizes(report).message());
  EXPECT_THAT(message, HasSubstr("update of k=64, 3 sites, weights equal, PEERS"));
  EXPECT_THAT(message, Not(HasSubstr("64,21,64")));
}

TEST(BenchSizesTest, TableAndJsonHoldEveryRow) {
  const SizeReport report = ShortReport();
  EXPECT_THAT(SizeTable(report), HasSubstr("64,21,64 PEERS"));
  EXPECT_THAT(SizeJson(report), HasSubstr("\"k\": 512, \"sites\": 3, \"weights\": \"64,21,64\""));
}

TEST(BenchSizesTest, TooFewParametersAreRefused) {
  SizeBenchOptions options;
  options.update_parameters = 4095;
  EXPECT_EQ(RunSizeBench(options).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace isthmus
