#include "daemon/app/round_bench_setup.h"

#include <google/protobuf/text_format.h>

#include <set>
#include <string>

#include "daemon/app/run_file.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

TEST(RoundBenchSetupTest, TheRunFileIsOneThatACoordinatorTakes) {
  const RunFile run = MakeBenchRun({}, "bytes-k64", 64, 40);
  std::string text;
  ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(run, &text));
  const RunFileReading reading = ReadRunFile(text);
  EXPECT_FALSE(reading.has_errors()) << FindingsText("run", reading.findings);
  EXPECT_EQ(reading.run.exchange().contribution_codec(), "topk(k=64)|levels(bits=1)");
  EXPECT_EQ(reading.run.rounds().total_rounds(), 40);
  EXPECT_EQ(reading.run.rounds().start_sites(), 3);
  EXPECT_TRUE(reading.run.rounds().overlap());
  EXPECT_TRUE(reading.run.rounds().dense_last_round());
  EXPECT_EQ(reading.run.evaluation().every_rounds(), 0);
}

TEST(RoundBenchSetupTest, MadeUpTextIsTheSameForTheSameSeedAndIsWordsInLines) {
  const std::string text = MakeSeededText(20000, 7);
  EXPECT_EQ(text, MakeSeededText(20000, 7));
  EXPECT_NE(text, MakeSeededText(20000, 8));
  EXPECT_GE(text.size(), 20000u);
  EXPECT_LT(text.size(), 20011u);
  const std::set<char> used(text.begin(), text.end());
  EXPECT_EQ(used.size(), 28u);
  EXPECT_NE(text.find('\n'), std::string::npos);
}

TEST(RoundBenchSetupTest, TheUplinkSendsAFrameInAQuarterOfARound) {
  EXPECT_EQ(QuarterRoundUplink(50000, 2), 100000);
  EXPECT_EQ(QuarterRoundUplink(0, 2), 1);
  EXPECT_EQ(QuarterRoundUplink(50000, 0), 1);
}

}  // namespace
}  // namespace isthmus
