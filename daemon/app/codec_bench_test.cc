#include "daemon/app/codec_bench.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

TEST(CodecBench, MeasuresEachSpecAgainstThePublishedForm) {
  const Layout layout({40000, 3000}, 1);
  FakeClock clock;
  const auto results =
      MeasureCodecs({"topk(k=64)", "topk(k=512)", "dense(bits=24)|zstd(1)"}, layout, 1, clock, {});
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), 3);
  EXPECT_DOUBLE_EQ((*results)[0].published_bytes_per_parameter, 0.02734375);
  EXPECT_DOUBLE_EQ((*results)[1].published_bytes_per_parameter, 0.21875);
  EXPECT_DOUBLE_EQ((*results)[2].published_bytes_per_parameter, 0);
  for (const CodecBenchResult& result : *results) {
    EXPECT_GT(result.frame_bytes, 0);
    EXPECT_DOUBLE_EQ(result.bytes_per_parameter, result.frame_bytes / 43000.0);
  }
  EXPECT_LT((*results)[0].bytes_per_parameter, (*results)[0].published_bytes_per_parameter);
  EXPECT_THAT((*results)[0].spec, HasSubstr("k=64"));
}

TEST(CodecBench, TheSameSeedGivesTheSameFrames) {
  const Layout layout({9000}, 1);
  FakeClock clock;
  const auto first = MeasureCodecs({"topk(k=64)"}, layout, 1, clock, {});
  const auto second = MeasureCodecs({"topk(k=64)"}, layout, 1, clock, {});
  EXPECT_EQ(first->front().frame_bytes, second->front().frame_bytes);
}

TEST(CodecBench, ASpecThatIsNoneIsAnError) {
  FakeClock clock;
  EXPECT_EQ(MeasureCodecs({"magic"}, Layout({10}, 1), 1, clock, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(CodecBench, TableAndJsonHaveTheSameFigures) {
  const std::vector<CodecBenchResult> results = {{"topk", 12300, 0.0123, 0.0246, 1.5e8, 3e8},
                                                 {"dense", 300, 3, 0, 1, 2}};
  EXPECT_EQ(CodecBenchTable(results),
            "codec    frame  bytes/parameter  published   of it  encode values/s  decode values/s\n"
            "topk   12.3 kB           0.0123     0.0246  50.0 %             150M             300M\n"
            "dense    300 B           3.0000          -       -                1                2\n");
  const auto json = nlohmann::json::parse(CodecBenchJson(results));
  EXPECT_EQ(json[0]["spec"], "topk");
  EXPECT_EQ(json[1]["bytes_per_parameter"], 3.0);
}

}  // namespace
}  // namespace isthmus
