#include "gpu/bench_speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isthmus {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

CodecBenchOptions SmallOptions(absl::Time* time) {
  CodecBenchOptions options;
  options.parameters = 16 * 4096;
  options.repeats = 2;
  options.now = [time] { return *time += absl::Milliseconds(1); };
  return options;
}

TEST(BenchSpeedTest, EachWorkStandsBesideWhatTheSameThreadsDoWithoutIt) {
  absl::Time time = absl::UnixEpoch();
  const auto report = RunSpeedBench(SmallOptions(&time), 2);
  ASSERT_TRUE(report.ok()) << report.status();
  // Three paths by one and two threads, memcpy, six of int8, three of the separate residual; apply of
  // frames that are not packed, on each path, update made, encoded, decoded.
  ASSERT_EQ(report->rows.size(), 23u);
  EXPECT_EQ(report->rows[0].path, "portable");
  EXPECT_EQ(report->rows[1].threads, 2);
  // A millisecond each by the test's clock.
  EXPECT_DOUBLE_EQ(report->rows[0].gb_per_second, 16 * 4096 * 4 / 1e6);
  EXPECT_DOUBLE_EQ(report->rows[0].ratio(), 1);
  EXPECT_EQ(report->rows[19].target, 0.5);
  EXPECT_EQ(report->rows[20].target, 0);
  EXPECT_TRUE(CheckSpeed(*report).ok());
}

TEST(BenchSpeedTest, AMachineOfOneCoreHasNoRowsOfAllCores) {
  absl::Time time = absl::UnixEpoch();
  const auto report = RunSpeedBench(SmallOptions(&time), 1);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->rows.size(), 20u);
}

TEST(BenchSpeedTest, EightBitsStandBesideACopy) {
  absl::Time time = absl::UnixEpoch();
  const auto report = RunSpeedBench(SmallOptions(&time), 1);
  ASSERT_TRUE(report.ok());
  const SpeedRow& row = report->rows[4];
  EXPECT_EQ(row.work, "int8 encode, as it is");
  EXPECT_EQ(row.path, "avx2");
  EXPECT_EQ(row.against, "memcpy");
  EXPECT_EQ(row.target, 0.5);
  EXPECT_EQ(report->rows[9].work, "int8 decode, zstd(1)");
  EXPECT_EQ(report->rows[9].target, 0);
}

TEST(BenchSpeedTest, AnUpdateStandsBesideReadingAndWritingTheAnchorInPlace) {
  absl::Time time = absl::UnixEpoch();
  const auto report = RunSpeedBench(SmallOptions(&time), 1);
  ASSERT_TRUE(report.ok());
  const SpeedRow &encode = report->rows[18], &decode = report->rows[19];
  EXPECT_EQ(encode.work, "encode update of 16");
  EXPECT_EQ(decode.work, "decode update of 16, apply");
  for (const SpeedRow* row : {&encode, &decode}) {
    EXPECT_EQ(row->against, "read and write in place");
    EXPECT_EQ(row->threads, 1);
    EXPECT_EQ(row->target, 0);
    EXPECT_DOUBLE_EQ(row->ratio(), 1);
  }
}

TEST(BenchSpeedTest, AFrameworksTopKIsGivenWholeBlocksAndTenTimesItsSpeedIsWanted) {
  absl::Time time = absl::UnixEpoch();
  CodecBenchOptions options = SmallOptions(&time);
  options.parameters += 100;
  int calls = 0;
  options.framework_top_k = [&](absl::Span<const float> anchor, absl::Span<const float> parameters, int k) {
    EXPECT_EQ(anchor.size(), 16 * 4096u);
    EXPECT_EQ(parameters.size(), 16 * 4096u);
    EXPECT_EQ(k, 64);
    ++calls;
    time += absl::Milliseconds(19);
    return absl::OkStatus();
  };
  const auto report = RunSpeedBench(options, 1);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(calls, 2);
  const SpeedRow& row = report->rows[report->rows.size() - 8];
  EXPECT_EQ(row.against, "libtorch topk");
  EXPECT_EQ(row.target, 10);
  EXPECT_DOUBLE_EQ(row.ratio(), 20);
}

TEST(BenchSpeedTest, AFrameworkThatFailsFailsTheBench) {
  absl::Time time = absl::UnixEpoch();
  CodecBenchOptions options = SmallOptions(&time);
  options.framework_top_k = [](absl::Span<const float>, absl::Span<const float>, int) {
    return absl::InternalError("out of memory");
  };
  EXPECT_EQ(RunSpeedBench(options, 1).status().code(), absl::StatusCode::kInternal);
}

TEST(BenchSpeedTest, ARatioMoreThanATenthBelowItsTargetFailsTheCheck) {
  SpeedReport report;
  report.rows.push_back({"encode", "avx512", 1, "memcpy", 4.1, 10, 0.45});
  EXPECT_TRUE(CheckSpeed(report).ok());
  EXPECT_THAT(SpeedTable(report), HasSubstr("missed"));
  report.rows[0].gb_per_second = 4;
  const absl::Status status = CheckSpeed(report);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("encode (avx512, 1 threads): 0.40 of memcpy, 0.45 wanted"));
}

TEST(BenchSpeedTest, APathTheProcessorLacksIsSaidAndNotHeldAgainstIt) {
  SpeedReport report;
  report.rows.push_back({"encode", "avx512", 1, "memcpy", 0, 0, 0.45});
  EXPECT_THAT(SpeedTable(report), HasSubstr("this processor lacks it"));
  EXPECT_THAT(SpeedTable(report), Not(HasSubstr("missed")));
  EXPECT_TRUE(CheckSpeed(report).ok());
  EXPECT_THAT(SpeedJson(report), HasSubstr("\"path\": \"avx512\""));
}

TEST(BenchSpeedTest, MistakesAreNamed) {
  absl::Time time = absl::UnixEpoch();
  CodecBenchOptions options = SmallOptions(&time);
  options.parameters = 10;
  EXPECT_THAT(std::string(RunSpeedBench(options, 1).status().message()), HasSubstr("10 parameters"));
  options.now = nullptr;
  EXPECT_THAT(std::string(RunSpeedBench(options, 1).status().message()), HasSubstr("no clock"));
}

}  // namespace
}  // namespace isthmus
