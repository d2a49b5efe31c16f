#include "daemon/app/round_bench.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace isthmus {
namespace {

// Real processes, a model of a few thousand parameters.
RoundBenchOptions Small(const std::string& part) {
  RoundBenchOptions options;
  options.program = "daemon/app/isthmus";  // among this test's data
  options.repeats = 1;
  options.rounds = 8;
  options.part = part;
  options.shape.width = 16;
  options.shape.layers = 1;
  options.shape.heads = 2;
  options.shape.feed_forward = 32;
  options.shape.context = 32;
  options.shape.inner_steps = 40;
  return options;
}

class RoundBenchTest : public testing::Test {
 protected:
  RoundBenchReport Run(const RoundBenchOptions& options) {
    absl::StatusOr<RoundBenchReport> report = RunRoundBench(options, &clock_, &watch_);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *std::move(report) : RoundBenchReport();
  }

  InterruptWatch watch_;
  RealClock clock_;
};

TEST_F(RoundBenchTest, AKilledWorkerIsMissedAndTheRunGoesOn) {
  const RoundBenchReport report = Run(Small("worker-kill"));
  ASSERT_EQ(report.worker_kills.size(), 1u);
  EXPECT_GE(report.worker_kills[0].round, 8);
  EXPECT_GE(report.worker_kills[0].close_delay_seconds, 0);
  EXPECT_GT(report.worker_kills[0].found_dead_seconds, 0);
  EXPECT_GT(report.usual_round_seconds, 0);
  EXPECT_TRUE(report.coordinator_kills.empty() && report.waiting.empty() && report.bytes.empty());
}

TEST_F(RoundBenchTest, AKilledCoordinatorGoesOnWithTheNextCommit) {
  const RoundBenchReport report = Run(Small("coordinator-kill"));
  ASSERT_EQ(report.coordinator_kills.size(), 1u);
  const CoordinatorKill& kill = report.coordinator_kills[0];
  EXPECT_GT(kill.listen_seconds, 0);
  EXPECT_GT(kill.commit_seconds, kill.listen_seconds);
  EXPECT_GT(kill.outage_seconds, kill.commit_seconds);
}

TEST_F(RoundBenchTest, WaitingIsSharesOfTheSitesTimeWithOverlapAndWithout) {
  RoundBenchOptions options = Small("waiting");
  options.shape.inner_steps = 300;  // some heartbeats long
  const RoundBenchReport report = Run(options);
  ASSERT_EQ(report.waiting.size(), 4u);
  for (size_t i = 0; i < report.waiting.size(); ++i) {
    EXPECT_EQ(report.waiting[i].is_overlap_on, i % 2 == 0);
    EXPECT_EQ(report.waiting[i].upload_bytes_per_second > 0, i >= 2);
    EXPECT_EQ(report.waiting[i].rounds, 5);  // of eight, without the first two and the last
    EXPECT_GT(report.waiting[i].compute_seconds, 0);
  }
}

TEST_F(RoundBenchTest, BytesAndLossComeFromTheSameRun) {
  const RoundBenchReport report = Run(Small("bytes"));
  ASSERT_EQ(report.bytes.size(), 2u);
  EXPECT_EQ(report.bytes[0].k, 64);
  EXPECT_EQ(report.bytes[1].k, 512);
  for (const BytesRun& run : report.bytes) {
    EXPECT_EQ(run.rounds, 7);  // of eight, the last of which is dense
    EXPECT_GT(run.frame_up, 0);
    EXPECT_GT(run.last_up, run.frame_up);
    EXPECT_GT(run.loss_before, run.loss_after);
    EXPECT_GT(run.loss_after, 0);
  }
  EXPECT_GT(report.bytes[1].frame_up, report.bytes[0].frame_up);
}

TEST_F(RoundBenchTest, AProgramThatIsNotThereIsNamed) {
  RoundBenchOptions options = Small("bytes");
  options.program = "/nowhere/isthmus";
  const absl::Status status = RunRoundBench(options, &clock_, &watch_).status();
  EXPECT_EQ(status.message(), "/nowhere/isthmus cannot be started: No such file or directory");
}

}  // namespace
}  // namespace isthmus
