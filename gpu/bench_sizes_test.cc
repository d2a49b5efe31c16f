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
  EXPECT_EQ(row.worst_ratio, row.ratio());       // of one frame
  EXPECT_NEAR(row.gap_entropy, 6 + 1.43, 0.08);  // geometric, as of so many gaps
  EXPECT_LT(row.gap_entropy, row.positions);
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

TEST(BenchSizesTest, MadeUpFramesThatAreNotJudgedMissNothing) {
  SizeReport report = ShortReport();
  report.updates.clear();
  for (FrameSizeRow& row : report.frames) row.limit = 1.0001;
  EXPECT_THAT(SizeTable(report), HasSubstr("shown, not judged: the\nlimits are those of at least 16777216"));
  EXPECT_THAT(SizeTable(report), Not(HasSubstr("missed")));
  report.frame_parameters = 1 << 24;
  EXPECT_THAT(SizeTable(report), Not(HasSubstr("judged")));
  EXPECT_THAT(SizeTable(report), HasSubstr("  missed\n"));
}

RealFrameSizes RealSizes(int64_t parameters) {
  RealFrameSizes real;
  real.parameters = parameters;
  real.frames = 18;
  FrameSizeRow row;
  row.k = 64;
  row.value_bits = 1;
  row.positions = 7.5;
  row.positions_bound = 7;
  row.gap_entropy = 7.25;
  row.values = 1;
  row.levels = 0.25;
  row.rest = 0.5;
  row.bytes = 0.0175;
  row.worst_ratio = 1.25;
  row.limit = 1.04;
  real.rows = {row};
  return real;
}

TEST(BenchSizesTest, RealFramesOfASmallModelAreShownAndNotJudged) {
  SizeReport report = ShortReport();
  EXPECT_THAT(SizeTable(report), Not(HasSubstr("real")));
  EXPECT_THAT(SizeJson(report), Not(HasSubstr("real")));
  report.real = RealSizes((1 << 24) - 1);
  EXPECT_TRUE(CheckSizes(report).ok());
  const std::string table = SizeTable(report);
  EXPECT_THAT(table, HasSubstr("frames of real differences, 18 of 16777215 parameters"));
  EXPECT_THAT(table, HasSubstr("shown, not judged"));
  EXPECT_THAT(table,
              HasSubstr("   64     1     7.5000   7.0000   7.2500   1.0000   0.2500   0.5000   9.2500  "
                        "1.1562    1.0938  1.2500   1.04   0.01750\n"));
  EXPECT_THAT(SizeJson(report),
              HasSubstr("\"real_parameters\": 16777215, \"real_differences\": 18, \"real_judged\": false, "
                        "\"real_frames\": [\n  {\"k\": 64, \"bits\": 1, \"positions\": 7.5, "
                        "\"positions_bound\": 7, \"gap_entropy\": 7.25, \"values\": 1, \"levels\": 0.25, "
                        "\"rest\": 0.5, \"ratio\": 1.15625, \"ratio_without_rest\": 1.09375, "
                        "\"worst_ratio\": 1.25, \"limit\": 1.04, \"bytes\": 0.0175}\n], "
                        "\"update_parameters\": "));
}

TEST(BenchSizesTest, RealFramesOfALargeModelAreJudgedByTheirLargest) {
  SizeReport report = ShortReport();
  report.frame_parameters = 1 << 24;
  report.frames.clear();
  report.real = RealSizes(1 << 24);
  EXPECT_THAT(std::string(CheckSizes(report).message()),
              HasSubstr("frame of real differences of k=64, 1 bits: 1.2500 of the bound, at most 1.04"));
  const std::string table = SizeTable(report);
  EXPECT_THAT(table, Not(HasSubstr("not judged")));
  EXPECT_THAT(table, HasSubstr("0.01750  missed\n"));
  report.real.rows[0].worst_ratio = 1.04;
  EXPECT_TRUE(CheckSizes(report).ok());
}

TEST(BenchSizesTest, TooFewParametersAreRefused) {
  SizeBenchOptions options;
  options.update_parameters = 4095;
  EXPECT_EQ(RunSizeBench(options).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace isthmus
