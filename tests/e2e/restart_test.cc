// The coordinator killed or stopped in mid-run, and everything at once: what was committed stays committed.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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
}

}  // namespace
}  // namespace isthmus
