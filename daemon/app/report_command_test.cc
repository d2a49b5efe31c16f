#include "daemon/app/report_command.h"

#include <fstream>
#include <sstream>

#include "daemon/app/fake_status_watch.h"
#include "daemon/app/loss_curve_svg.h"
#include "daemon/app/round_line.h"
#include "daemon/app/sample_status.h"
#include "daemon/app/status_json.h"
#include "daemon/app/summary_table.h"
#include "daemon/app/traffic_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

std::string Read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class ReportCommandTest : public ::testing::Test {
 protected:
  absl::Status Run(FakeStatusWatch* fake) {
    return Report(options_, fake->watch(), fake->clock, out_, error_);
  }

  static std::string File(const std::string& name) { return ::testing::TempDir() + "/" + name; }

  static std::string Ending(const RunStatus& status) {
    return "\n" + SummaryTable(status) + "\n" + SiteTable(status) + "\n" + TrafficTable(status);
  }

  FakeStatusWatch nobody_{{}};
  ReportOptions options_;
  std::ostringstream out_, error_;
};

TEST_F(ReportCommandTest, FollowsARunPrintingEachRoundOnceAcrossABrokenConnection) {
  options_.url = "isthmus://host:7/kjv";
  options_.is_follow = true;
  FakeStatusWatch fake({{{SampleStatus()}}, {{SampleStatus(), SampleFinishedStatus()}}});
  EXPECT_TRUE(Run(&fake).ok());
  std::string expected = RoundLineHeadings() + "\n";
  const RunStatus finished = SampleFinishedStatus();
  for (const CommitSummary& commit : finished.commits()) expected += RoundLine(commit) + "\n";
  EXPECT_EQ(out_.str(), expected + Ending(finished));
  EXPECT_TRUE(fake.requests[0].all_commits());
  EXPECT_THAT(error_.str(), HasSubstr("nobody answers"));
}

TEST_F(ReportCommandTest, ARoundIsPrintedOnceItsHeldOutLossIsThereOrTheNextIsCommitted) {
  options_.url = "isthmus://host:7/kjv";
  options_.is_follow = true;
  RunStatus first = SampleStatus(), second = SampleStatus(), last = SampleFinishedStatus();
  // The newest round first without its loss, then with it; later statuses carry only the newest commits.
  first.mutable_commits()->DeleteSubrange(1, 1);
  first.mutable_commits(0)->set_held_out_tokens(0);
  second.mutable_commits()->DeleteSubrange(1, 1);
  last.mutable_commits()->DeleteSubrange(0, 1);
  FakeStatusWatch fake({{{first, second, last}}});
  EXPECT_TRUE(Run(&fake).ok());
  std::string expected = RoundLineHeadings() + "\n";
  const RunStatus finished = SampleFinishedStatus();
  for (const CommitSummary& commit : finished.commits()) expected += RoundLine(commit) + "\n";
  EXPECT_EQ(out_.str(), expected + Ending(finished));
}

TEST_F(ReportCommandTest, WithoutFollowTheFirstStatusIsReported) {
  options_.url = "isthmus://host:7/kjv";
  FakeStatusWatch fake({{{SampleStatus(), SampleFinishedStatus()}}});
  EXPECT_TRUE(Run(&fake).ok());
  EXPECT_THAT(out_.str(), HasSubstr(SummaryTable(SampleStatus())));
}

TEST_F(ReportCommandTest, WritesCurveAndStatusAndReadsThatStatusBack) {
  options_.url = "isthmus://host:7/kjv";
  options_.svg_out = File("curve.svg");
  options_.json_out = File("status.json");
  FakeStatusWatch fake({{{SampleFinishedStatus()}}});
  EXPECT_TRUE(Run(&fake).ok());
  EXPECT_EQ(Read(options_.svg_out), LossCurveSvg(SampleFinishedStatus()));
  const std::string printed = out_.str();
  options_ = ReportOptions();
  options_.json_in = File("status.json");
  out_.str("");
  EXPECT_TRUE(Run(&nobody_).ok());
  EXPECT_EQ(out_.str(), printed);
}

TEST_F(ReportCommandTest, UnmetCriteriaAreAnErrorThatNamesThemAll) {
  options_.url = "isthmus://host:7/kjv";
  options_.min_rounds = 40;
  options_.max_held_out_loss = 1.5;
  FakeStatusWatch fake({{{SampleFinishedStatus()}}});
  const absl::Status status = Run(&fake);
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("3 rounds were committed; at least 40"),
                                                   HasSubstr("ended at 1.6789; below 1.5")));
}

TEST_F(ReportCommandTest, MetCriteriaAreSuccess) {
  options_.url = "isthmus://host:7/kjv";
  options_.min_rounds = 3;
  options_.max_held_out_loss = 1.75;
  FakeStatusWatch fake({{{SampleFinishedStatus()}}});
  EXPECT_TRUE(Run(&fake).ok());
}

TEST_F(ReportCommandTest, NeedsExactlyOneSource) {
  EXPECT_TRUE(absl::IsInvalidArgument(Run(&nobody_)));
  options_.url = "isthmus://host:7/kjv";
  options_.json_in = File("status.json");
  EXPECT_TRUE(absl::IsInvalidArgument(Run(&nobody_)));
}

TEST_F(ReportCommandTest, NamesAFileThatCannotBeReadOrWritten) {
  options_.json_in = File("absent.json");
  EXPECT_THAT(std::string(Run(&nobody_).message()), HasSubstr("absent.json"));
  std::ofstream(File("bad.json")) << "{";
  options_.json_in = File("bad.json");
  EXPECT_THAT(std::string(Run(&nobody_).message()), HasSubstr("bad.json"));
  std::ofstream(File("good.json")) << StatusToJson(SampleStatus(), true).value();
  options_.json_in = File("good.json");
  options_.svg_out = File("no/such/folder.svg");
  EXPECT_THAT(std::string(Run(&nobody_).message()), HasSubstr("folder.svg"));
}

TEST_F(ReportCommandTest, AFileThatCannotBeWrittenIsNamedBeforeAnyRoundIsWaitedFor) {
  options_.url = "isthmus://host:7/kjv";
  FakeStatusWatch fake({{{SampleFinishedStatus()}}});
  for (std::string* path : {&options_.svg_out, &options_.json_out}) {
    *path = ::testing::TempDir();
    const absl::Status status = Run(&fake);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(*path + ": cannot be written: Is a directory"));
    path->clear();
  }
  EXPECT_TRUE(fake.requests.empty());
  EXPECT_EQ(out_.str(), "");
}

}  // namespace
}  // namespace isthmus
