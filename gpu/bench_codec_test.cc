#include "gpu/bench_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isthmus {
namespace {

using ::testing::HasSubstr;

CodecBenchOptions SmallOptions(absl::Time* time) {
  CodecBenchOptions options;
  options.parameters = 64 * 4096;
  options.repeats = 1;
  options.now = [time] { return *time += absl::Milliseconds(1); };
  return options;
}

TEST(BenchCodecTest, BytesStandBesideBoundAndPublishedForm) {
  absl::Time time = absl::UnixEpoch();
  CodecBenchOptions options = SmallOptions(&time);
  options.specs = {"topk(k=64)", "topk(k=512)|levels(bits=2)", "dense"};
  const auto report = RunCodecBench(options);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->rows.size(), 3u);
  const CodecBenchRow& sparse = report->rows[0];
  EXPECT_EQ(sparse.spec, "topk(k=64,block=4096)|levels(bits=1)|gaps|zstd(1)");
  EXPECT_EQ(sparse.density, 64.0 / 4096);
  EXPECT_NEAR(sparse.bound_bytes, 0.01634, 0.00001);
  EXPECT_NEAR(sparse.published_bytes, 0.0273, 0.0001);
  EXPECT_GT(sparse.frame_bytes, sparse.bound_bytes);
  EXPECT_LT(sparse.frame_bytes, 1.15 * sparse.bound_bytes);
  EXPECT_NEAR(report->rows[1].published_bytes, 0.219, 0.001);
  EXPECT_LT(report->rows[1].frame_bytes, 0.11);
  EXPECT_EQ(report->rows[2].density, 1);
  EXPECT_EQ(report->rows[2].bound_bytes, 3);
  EXPECT_GT(sparse.update_bytes_16_sites, sparse.update_bytes_3_sites);
  EXPECT_DOUBLE_EQ(sparse.encode_gb_per_second, 64 * 4096 * 4 / 1e6);  // a millisecond by the test's clock
}

TEST(BenchCodecTest, TableAndJsonHoldEveryRow) {
  absl::Time time = absl::UnixEpoch();
  CodecBenchOptions options = SmallOptions(&time);
  options.specs = {"topk(k=64)", "dense"};
  const auto report = RunCodecBench(options);
  ASSERT_TRUE(report.ok());
  for (const std::string& text : {CodecBenchTable(*report), CodecBenchJson(*report)}) {
    EXPECT_THAT(text, HasSubstr("topk(k=64,block=4096)|levels(bits=1)|gaps|zstd(1)"));
    EXPECT_THAT(text, HasSubstr("dense(bits=24)|zstd(1)"));
  }
}

TEST(BenchCodecTest, MistakesAreNamed) {
  absl::Time time = absl::UnixEpoch();
  CodecBenchOptions options = SmallOptions(&time);
  options.specs = {"topk(k=0)"};
  EXPECT_THAT(std::string(RunCodecBench(options).status().message()), HasSubstr("character 8"));
  options.parameters = 10;
  EXPECT_THAT(std::string(RunCodecBench(options).status().message()), HasSubstr("10 parameters"));
  options.now = nullptr;
  EXPECT_THAT(std::string(RunCodecBench(options).status().message()), HasSubstr("no clock"));
}

}  // namespace
}  // namespace isthmus
