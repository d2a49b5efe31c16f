// The coordinator killed or stopped in mid-run, and everything at once: what was committed stays committed.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/e2e/run_world.h"

namespace isthmus {
namespace {

const RunWorld::Arguments kPaced = {"--max-tokens-per-second", std::to_string(kTenStepsPerSecond)};

using Digests = std::map<int64_t, std::string>;

Digests DigestsOf(const RunStatus& status) {
  Digests digests;
  for (const CommitSummary& c : status.commits()) digests[c.round()] = c.state_digest();
  return digests;
}

// Every commit of `before` is in `after`, with the same digest.
void ExpectKept(const Digests& before, const Digests& after) {
  for (const auto& [round, digest] : before) {
    const auto it = after.find(round);
    ASSERT_NE(it, after.end()) << "round " << round << " is lost";
    EXPECT_EQ(it->second, digest) << "round " << round << " was committed anew";
  }
}

TEST(RestartTest, AKilledCoordinatorResumesTheSameRunAndNoWorkerIsStartedAgain) {
  RunWorld world;
  RunShape shape;
  shape.rounds = 12;
  shape.rounds_more = "quorum: 3";
  shape.suspect_after = "seconds: 5";
  ASSERT_TRUE(world.StartCoordinator(shape));
  for (const char* site : {"a", "b", "c"}) world.StartWorker(site, kPaced);
  std::string run_id;
  Digests before;
  for (int kills = 1; kills <= 3; ++kills) {
    // In the midst of a round, with the contributions of two sites in while the third stands still.
    world.AwaitRounds(3 * kills);
    world.worker("c").Signal(SIGSTOP);
    const RunStatus open = world.Await("two of three contributions", [&](const RunStatus& s) {
      return s.phase() == "ROUND_OPEN" && SiteOf(s, "a").has_contributed() &&
             SiteOf(s, "b").has_contributed();
    });
    const auto all = world.Ask(/*all_commits=*/true);
    ASSERT_TRUE(all.ok()) << all.status();
    if (kills == 1) run_id = all->run_id();
    ExpectKept(before, DigestsOf(*all));
    before = DigestsOf(*all);
    world.coordinator().Kill();
    EXPECT_EQ(world.coordinator().Wait(), 128 + SIGKILL);
    world.worker("c").Signal(SIGCONT);
    ASSERT_TRUE(world.RestartCoordinator());
    const auto back = world.Ask(/*all_commits=*/true);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->run_id(), run_id);
    EXPECT_EQ(back->run_restarts(), kills);
    EXPECT_GE(back->round(), open.round()) << "the open round is taken up again, or a later one";
    ExpectKept(before, DigestsOf(*back));
    for (const char* site : {"a", "b", "c"}) EXPECT_FALSE(world.worker(site).has_ended()) << world.Said();
  }
  const RunStatus status = world.AwaitFinished();
  world.ExpectWorkersDone();
  EXPECT_EQ(status.rounds_committed(), 12);
  EXPECT_EQ(status.rounds_aborted(), 0) << status.ShortDebugString();
  EXPECT_EQ(status.digests_deviating(), 0);
  for (const char* site : {"a", "b", "c"}) {
    EXPECT_EQ(SiteOf(status, site).incarnation(), 1) << "the same life over a new connection";
    EXPECT_GE(SiteOf(status, site).rounds_included(), 12) << status.ShortDebugString() << world.Said();
  }
  const auto all = world.Ask(/*all_commits=*/true);
  ASSERT_TRUE(all.ok()) << all.status();
  ExpectKept(before, DigestsOf(*all));
}

double ResidualNormAfter(const RunStatus& status, int64_t round) {
  for (const CommitSummary& c : status.commits()) {
    if (c.round() == round) return c.residual_norm();
  }
  return 0;
}

TEST(RestartTest, AKilledCoordinatorStillCarriesWhatItsUpdatesHadLeft) {
  RunWorld world;
  RunShape shape;
  shape.sites = 2;
  shape.more = "exchange { update_codec: \"topk(k=64)|levels(bits=2)\" snapshot_codec: \"fp32|zstd(3)\" }\n";
  ASSERT_TRUE(world.StartCoordinator(shape));
  for (const char* site : {"a", "b"}) world.StartWorker(site, kPaced);
  for (int kills = 1; kills <= 2; ++kills) {
    world.AwaitRounds(2 * kills + 1);
    world.coordinator().Kill();
    EXPECT_EQ(world.coordinator().Wait(), 128 + SIGKILL);
    ASSERT_TRUE(world.RestartCoordinator());
    const auto back = world.Ask(/*all_commits=*/true);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(back->is_update_recompressed());
    EXPECT_EQ(back->residual_forfeited_square_sum(), 0) << world.coordinator().output();
    ASSERT_GT(back->commits_size(), 0);
    const int64_t last = back->commits(back->commits_size() - 1).round();
    EXPECT_GT(back->residual_norm(), 0);
    EXPECT_EQ(back->residual_norm(), ResidualNormAfter(*back, last));
  }
  // One that lost the file says so, counts it, and goes on.
  world.coordinator().Kill();
  EXPECT_EQ(world.coordinator().Wait(), 128 + SIGKILL);
  std::filesystem::remove_all(world.PathOf("state/residuals"));
  ASSERT_TRUE(world.RestartCoordinator());
  const RunStatus status = world.AwaitFinished();
  world.ExpectWorkersDone();
  EXPECT_TRUE(absl::StrContains(world.coordinator().output(), "what the hub carried after round"))
      << world.coordinator().output();
  EXPECT_GT(status.residual_forfeited_square_sum(), 0);
  EXPECT_LT(status.residual_norm(), 1e-6) << "the dense last round sends all of it";
  EXPECT_EQ(status.rounds_committed(), 8);
  EXPECT_EQ(status.digests_deviating(), 0);
  EXPECT_GT(status.digests_compared(), 0);
}

// What `isthmus report` prints.
std::vector<std::string> ReportOf(RunWorld* world) {
  const std::unique_ptr<Spawned> report = world->Start({"report", world->url()});
  EXPECT_EQ(report->Wait(), 0) << report->output();
  return absl::StrSplit(report->output(), '\n');
}

// The rows whose first word is one of these.
std::vector<std::string> RowsOf(const std::vector<std::string>& lines, const std::set<std::string>& firsts) {
  std::vector<std::string> rows;
  for (const std::string& line : lines) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (!words.empty() && firsts.count(words[0]) > 0) rows.push_back(line);
  }
  return rows;
}

TEST(RestartTest, AReportSaysOfWhatWasBeforeTheSameWhetherTheCoordinatorWasKilledStoppedOrNeither) {
  RunWorld world;
  RunShape shape;
  shape.rounds = 12;
  shape.sites = 2;
  shape.more =
      "exchange { contribution_codec: \"mask(k=256,block=4096,seed=7)|levels(bits=2)\" error_feedback: "
      "SEPARATE\n"
      "  carry_decay: 0.95 }\n";
  ASSERT_TRUE(world.StartCoordinator(shape));
  for (const char* site : {"a", "b"}) world.StartWorker(site, kPaced);
  const std::set<std::string> first_rounds = {"1", "2", "3", "4", "5", "6"};
  for (const int signal : {SIGKILL, SIGTERM}) {
    // With the evaluation of round 4, and one round more that is not looked at.
    world.AwaitRounds(signal == SIGKILL ? 7 : 9);
    const std::vector<std::string> before = RowsOf(ReportOf(&world), first_rounds);
    ASSERT_EQ(before.size(), 6u);
    world.coordinator().Signal(signal);
    EXPECT_EQ(world.coordinator().Wait(), signal == SIGKILL ? 128 + SIGKILL : 0);
    ASSERT_TRUE(world.RestartCoordinator());
    EXPECT_EQ(RowsOf(ReportOf(&world), first_rounds), before);
  }
  const RunStatus end = world.AwaitFinished();
  world.ExpectWorkersDone();
  for (const char* site : {"a", "b"}) EXPECT_GT(SiteOf(end, site).forfeited_square_sum(), 0) << "by decay";
  const std::vector<std::string> before = ReportOf(&world);
  world.coordinator().Kill();
  world.coordinator().Wait();
  ASSERT_TRUE(world.RestartCoordinator());
  const std::vector<std::string> after = ReportOf(&world);
  std::set<std::string> firsts = {"rounds", "tokens", "held-out", "of", "frames", "steps", "seconds"};
  for (int round = 1; round <= 12; ++round) firsts.insert(absl::StrCat(round));
  ASSERT_GE(RowsOf(before, firsts).size(), 12u + 8u);
  EXPECT_EQ(RowsOf(after, firsts), RowsOf(before, firsts));
  const RunStatus restarted = world.AwaitFinished();
  for (const char* site : {"a", "b"}) {
    EXPECT_EQ(SiteOf(restarted, site).rounds_included(), 12);
    EXPECT_EQ(SiteOf(restarted, site).contributed_steps(), SiteOf(end, site).contributed_steps());
    EXPECT_EQ(SiteOf(restarted, site).forfeited_square_sum(), SiteOf(end, site).forfeited_square_sum());
  }
  EXPECT_EQ(restarted.digests_compared(), end.digests_compared());
  // The workers' farewells are in no row.
  EXPECT_GT(restarted.bytes_in(), end.bytes_in() * 95 / 100);
  EXPECT_GT(restarted.bytes_out(), end.bytes_out() * 95 / 100);
}

TEST(RestartTest, AStoppedCoordinatorEndsWithZeroAndGoesOnLater) {
  RunWorld world;
  RunShape shape;
  shape.rounds = 8;
  shape.sites = 2;
  ASSERT_TRUE(world.StartCoordinator(shape));
  for (const char* site : {"a", "b"}) world.StartWorker(site, kPaced);
  world.AwaitRounds(3);
  const auto before = world.Ask(/*all_commits=*/true);
  ASSERT_TRUE(before.ok()) << before.status();
  world.coordinator().Signal(SIGTERM);
  EXPECT_EQ(world.coordinator().Wait(), 0) << world.coordinator().output();
  // The workers notice, say so, and wait.
  EXPECT_GE(world.worker("a").AwaitLine("session lost"), 0);
  ASSERT_TRUE(world.RestartCoordinator());
  const RunStatus status = world.AwaitFinished();
  world.ExpectWorkersDone();
  EXPECT_EQ(status.run_id(), before->run_id());
  EXPECT_EQ(status.rounds_committed(), 8);
  EXPECT_EQ(status.digests_deviating(), 0);
  const auto after = world.Ask(/*all_commits=*/true);
  ASSERT_TRUE(after.ok()) << after.status();
  ExpectKept(DigestsOf(*before), DigestsOf(*after));
}

TEST(RestartTest, AfterEverythingWasKilledTheRunGoesOnFromTheCommittedState) {
  RunWorld world;
  RunShape shape;
  shape.rounds = 11;
  ASSERT_TRUE(world.StartCoordinator(shape));
  for (const char* site : {"a", "b", "c"}) world.StartWorker(site, kPaced);
  world.AwaitRounds(3);
  const auto before = world.Ask(/*all_commits=*/true);
  ASSERT_TRUE(before.ok()) << before.status();
  for (const char* site : {"a", "b", "c"}) world.worker(site).Signal(SIGKILL);
  world.coordinator().Kill();
  for (const char* site : {"a", "b", "c"}) EXPECT_EQ(world.worker(site).Wait(), 128 + SIGKILL);

  ASSERT_TRUE(world.RestartCoordinator());
  for (const char* site : {"a", "b", "c"}) world.StartWorker(site, kPaced);
  const RunStatus status = world.AwaitFinished();
  world.ExpectWorkersDone();
  EXPECT_EQ(status.run_id(), before->run_id());
  EXPECT_EQ(status.rounds_committed(), 11);
  EXPECT_EQ(status.digests_deviating(), 0);
  for (const char* site : {"a", "b", "c"}) {
    EXPECT_EQ(SiteOf(status, site).incarnation(), 2);
    EXPECT_GE(SiteOf(status, site).rounds_included(), 4) << status.ShortDebugString() << world.Said();
  }
  const auto after = world.Ask(/*all_commits=*/true);
  ASSERT_TRUE(after.ok()) << after.status();
  ExpectKept(DigestsOf(*before), DigestsOf(*after));
}

TEST(RestartTest, AWorkerToldToLeaveWhileTheCoordinatorIsAwayEndsSoon) {
  RunWorld world;
  RunShape shape;
  shape.sites = 2;
  ASSERT_TRUE(world.StartCoordinator(shape));
  for (const char* site : {"a", "b"}) world.StartWorker(site, kPaced);
  world.AwaitRounds(2);
  // One that has sent its frame and waits for what becomes of it.
  world.worker("b").Signal(SIGSTOP);
  world.Await("a's contribution", [](const RunStatus& s) { return SiteOf(s, "a").has_contributed(); });
  world.coordinator().Kill();
  EXPECT_GE(world.worker("a").AwaitLine("session lost"), 0);
  world.worker("a").Signal(SIGTERM);
  EXPECT_EQ(world.worker("a").Wait(), 0) << world.worker("a").output();
  EXPECT_FALSE(absl::StrContains(world.worker("a").output(), "giving up:")) << world.worker("a").output();
}

TEST(RestartTest, AFinishedRunStaysFinishedWhenItIsStartedAgain) {
  RunWorld world;
  RunShape shape;
  shape.rounds = 3;
  shape.sites = 1;
  ASSERT_TRUE(world.StartCoordinator(shape, {"--exit-when-finished"}));
  world.StartWorker("a");
  EXPECT_EQ(world.coordinator().Wait(), 0) << world.coordinator().output();
  world.ExpectWorkersDone();
  const std::string weights = world.ReadFile("state/final.safetensors");
  ASSERT_GT(weights.size(), 4 * 27000);
  ASSERT_EQ(unlink(world.PathOf("state/final.safetensors").c_str()), 0);
  ASSERT_TRUE(world.RestartCoordinator());
  const RunStatus status = world.AwaitFinished();
  EXPECT_EQ(world.ReadFile("state/final.safetensors"), weights) << "written again where it was missing";
  EXPECT_EQ(status.rounds_committed(), 3);
  EXPECT_GT(status.held_out_loss_end(), 0);
  // A worker that comes too late learns so and is done.
  EXPECT_EQ(world.StartWorker("late").Wait(), 0) << world.worker("late").output();
  world.coordinator().Signal(SIGTERM);
  EXPECT_EQ(world.coordinator().Wait(), 0) << world.coordinator().output();
  // More rounds are refused, with what to do instead, and the run can still be asked.
  shape.rounds = 6;
  world.WriteFile("run.textproto", RunText(shape));
  const std::unique_ptr<Spawned> longer =
      world.Start({"coordinator", world.PathOf("run.textproto"), "--listen", "127.0.0.1:0", "--state-dir",
                   world.PathOf("state")});
  EXPECT_EQ(longer->Wait(), 2) << longer->output();
  EXPECT_EQ(
      longer->standard_error(),
      "isthmus: the run is finished, after 3 rounds, and cannot go on: rounds.total_rounds was 3 and is now "
      "6; set it back, or begin another run with --init final.safetensors on another --state-dir\n");
  shape.rounds = 3;
  world.WriteFile("run.textproto", RunText(shape));
  ASSERT_TRUE(world.RestartCoordinator());
  EXPECT_EQ(world.AwaitFinished().rounds_committed(), 3);
  // What the error advises.
  const std::unique_ptr<Spawned> another =
      world.Start({"coordinator", world.PathOf("run.textproto"), "--listen", "127.0.0.1:0", "--state-dir",
                   world.PathOf("more"), "--init", world.PathOf("state/final.safetensors")});
  EXPECT_GE(another->AwaitLine("listening on "), 0) << another->output();
}

}  // namespace
}  // namespace isthmus
