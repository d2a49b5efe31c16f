#include "daemon/app/summary_table.h"

#include "daemon/app/sample_status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SummarizeRun, CountsBytesPerParameterRoundAndSite) {
  const RunSummary summary = SummarizeRun(SampleFinishedStatus());
  // 7 contributions of 7 expected; a million parameters; frames of the last round stand apart.
  EXPECT_DOUBLE_EQ(summary.socket_up, 450000.0 / 7e6);
  EXPECT_DOUBLE_EQ(summary.socket_down, 1200000.0 / 7e6);
  EXPECT_DOUBLE_EQ(summary.frame_up, 420000.0 / 5e6);
  EXPECT_DOUBLE_EQ(summary.update_down, 740000.0 / 5e6);
  EXPECT_DOUBLE_EQ(summary.last_up, 3.0);
  EXPECT_DOUBLE_EQ(summary.last_down, 3.05);
  EXPECT_DOUBLE_EQ(summary.dense_ratio_up, 4 / summary.socket_up);
  EXPECT_DOUBLE_EQ(summary.steps_per_contribution, 150.0 / 7);
  EXPECT_DOUBLE_EQ(summary.per_step_ratio_up, summary.dense_ratio_up * 150.0 / 7);
}

TEST(SummarizeRun, ForfeitedShareIsOfAllStepsWhoseFateIsKnown) {
  const RunSummary summary = SummarizeRun(SampleFinishedStatus());
  EXPECT_EQ(summary.forfeited_steps, 20);
  EXPECT_DOUBLE_EQ(summary.forfeited_fraction, 20.0 / 130);
}

TEST(SummarizeRun, ARoundThatTheLedgerDoesNotKnowIsLost) {
  RunStatus status = SampleFinishedStatus();
  EXPECT_EQ(SummarizeRun(status).rounds_lost, 0);
  status.mutable_commits(2)->set_round(6);
  status.set_rounds_aborted(1);
  EXPECT_EQ(SummarizeRun(status).rounds_lost, 2);
}

TEST(SummarizeRun, AnEmptyStatusGivesZeros) {
  const RunSummary summary = SummarizeRun(RunStatus());
  EXPECT_EQ(summary.socket_up, 0);
  EXPECT_EQ(summary.dense_ratio_down, 0);
  EXPECT_EQ(summary.forfeited_fraction, 0);
  EXPECT_EQ(summary.rounds_lost, 0);
}

TEST(SummaryTable, ShowsWhatTheRunCameTo) {
  EXPECT_EQ(SummaryTable(SampleFinishedStatus()),
            R"text(run                                                                  kjv, 1.00M parameters
codec                                                                topk(k=512,block=4096)|levels(bits=1)|gaps|zstd(1)
error feedback                                                       SEPARATE x 0.95
rounds committed / aborted / lost                                    3 / 0 / 0
tokens                                                               71.7k
held-out loss of the anchor, start                                   5.5487
held-out loss of the anchor, end                                     1.6789
bytes per parameter, round and site on the sockets, up / down        0.0643 / 0.1714
  of these frames / updates alone, without the last round            0.0840 / 0.1480
  frames / updates of the last round (dense)                         3.0000 / 3.0500
less than dense fp32 once a round, up / down                         62.2 x / 23.3 x
less than data parallel at each of 21.4 steps, up / down [computed]  1333 x / 500 x
digests compared / deviating                                         5 / 0
steps forfeited                                                      20 (15.4 %)
seconds computing / waiting, all sites                               24.6 / 0.5 (2.0 % waiting)
)text");
}

TEST(SiteTable, ShowsEachSitesSpeedAgainstTheFastest) {
  EXPECT_EQ(
      SiteTable(SampleFinishedStatus()),
      R"text(site       lives  rounds  missed  tokens/s  of the fastest  steps in commits  steps forfeited
site-a         1       2       0     4.86k            1.00                60                0
site-b         2       1       1     4.66k            0.96                30               20
site-slow      1       2       0         -               -                20                0
)text");
}

TEST(UnmetCriteria, AFinishedRunWithinItsLimitsHasNone) {
  EXPECT_THAT(UnmetCriteria(SampleFinishedStatus(), {3, 1.75}), IsEmpty());
  EXPECT_THAT(UnmetCriteria(SampleFinishedStatus(), {}), IsEmpty());
}

TEST(UnmetCriteria, EachFailureIsNamedWithItsFigures) {
  RunStatus status = SampleStatus();
  status.set_digests_deviating(1);
  EXPECT_THAT(
      UnmetCriteria(status, {40, 1.75}),
      ElementsAre("the run is in phase ROUND_OPEN, not FINISHED",
                  "2 rounds were committed; at least 40 are needed",
                  "the held-out loss ended at 3.1200; below 1.75 is needed", "1 of 5 digests deviated"));
  RunStatus empty;
  empty.set_phase("FINISHED");
  EXPECT_THAT(UnmetCriteria(empty, {0, 1.75}),
              ElementsAre("the held-out loss was not measured at the end", "no digests were compared"));
}

}  // namespace
}  // namespace isthmus
