// Runs from start to end, with workers that are slow, die, join, leave, or carry a flipped bit.
#include <gtest/gtest.h>
#include <signal.h>

#include "absl/strings/match.h"
#include "daemon/app/status_json.h"
#include "daemon/rpc/health_probe.h"
#include "tests/e2e/run_world.h"

namespace isthmus {
namespace {

const RunWorld::Arguments kPaced = {"--max-tokens-per-second", std::to_string(kTenStepsPerSecond)};

void ExpectAllAgree(const RunStatus& status) {
  EXPECT_EQ(status.phase(), "FINISHED");
  EXPECT_GT(status.digests_compared(), 0);
  EXPECT_EQ(status.digests_deviating(), 0);
}

TEST(WholeRunTest, ThreeSitesTrainToTheEndAndEndWithZero) {
  RunWorld world;
  RunShape shape;
  shape.rounds_more = "quorum: 3";  // so that every round has everybody, however busy the machine
  ASSERT_TRUE(world.StartCoordinator(shape));
  EXPECT_TRUE(IsServing(world.address(), absl::Seconds(30)).value_or(false));
  for (const char* site : {"a", "b", "c"}) world.StartWorker(site);
  ExpectAllAgree(world.AwaitFinished());
  world.ExpectWorkersDone();

  // What people and their tools see afterwards.
  const auto asked = world.Start({"status", world.url(), "--json"});
  ASSERT_EQ(asked->Wait(), 0) << asked->output();
  const auto json = StatusFromJson(asked->standard_output());
  ASSERT_TRUE(json.ok()) << json.status();
  const RunStatus& s = *json;
  EXPECT_EQ(s.run_name(), "e2e");
  EXPECT_TRUE(absl::StartsWith(s.run_id(), "e2e-")) << s.run_id();
  EXPECT_EQ(s.rounds_committed(), 8);
  EXPECT_EQ(s.rounds_aborted(), 0);
  EXPECT_EQ(s.round(), 8);
  EXPECT_EQ(s.waiting_for(), "nothing: the run is over");
  EXPECT_EQ(s.state_digest().size(), 16);
  EXPECT_GT(s.bytes_in(), 0);
  EXPECT_GT(s.bytes_out(), 0);
  EXPECT_GT(s.held_out_loss_start(), 5) << "before training: about the logarithm of 256";
  EXPECT_GT(s.held_out_loss_end(), 0);
  EXPECT_LT(s.held_out_loss_end(), s.held_out_loss_start() - 0.5);
  ASSERT_EQ(s.commits_size(), 8);
  EXPECT_EQ(s.commits(7).state_digest(), s.state_digest());
  EXPECT_TRUE(s.commits(7).is_last());
  int64_t tokens = 0;
  for (const CommitSummary& c : s.commits()) {
    EXPECT_EQ(c.included(), 3) << c.ShortDebugString();
    EXPECT_FALSE(c.reason().empty());
    EXPECT_EQ(c.state_digest().size(), 16);
    tokens += c.tokens();
  }
  EXPECT_EQ(s.tokens(), tokens);
  ASSERT_EQ(s.sites_size(), 3);
  for (const SiteStatus& site : s.sites()) {
    EXPECT_EQ(site.incarnation(), 1);
    EXPECT_EQ(site.rounds_included(), 8) << site.ShortDebugString();
    EXPECT_EQ(site.rounds_missed(), 0);
    EXPECT_GT(site.progress().inner_steps(), 0);
    EXPECT_GT(site.progress().steps_per_second(), 0);
    EXPECT_GT(site.progress().loss(), 0);
    EXPECT_GT(site.progress().bytes_out(), 0);
    EXPECT_GT(site.progress().bytes_in(), 0);
    EXPECT_GT(site.progress().compute_seconds(), 0);
    // Classes and control are what went over the site's sockets, but for what the transport adds; a message
    // just queued may be in one only.
    int64_t up = 0, down = 0;
    for (const TrafficBytes& row : site.progress().traffic()) {
      up += row.bytes_up();
      down += row.bytes_down();
    }
    EXPECT_LE(up, site.progress().bytes_out() + 2000) << site.ShortDebugString();
    EXPECT_GE(up, 0.8 * site.progress().bytes_out()) << site.ShortDebugString();
    EXPECT_LE(down, site.progress().bytes_in() + 2000) << site.ShortDebugString();
    EXPECT_GE(down, 0.8 * site.progress().bytes_in()) << site.ShortDebugString();
  }
  ASSERT_EQ(s.traffic_size(), 6);
  for (const TrafficBytes& row : s.traffic()) {
    EXPECT_EQ(row.bytes_up() > 0, row.kind() <= TrafficBytes::CONTRIBUTION) << row.ShortDebugString();
    EXPECT_EQ(row.bytes_down() > 0, row.kind() == TrafficBytes::CONTROL ||
                                        row.kind() == TrafficBytes::UPDATE ||
                                        row.kind() == TrafficBytes::SNAPSHOT)
        << row.ShortDebugString();
  }

  const std::string weights = world.ReadFile("state/final.safetensors");
  EXPECT_TRUE(absl::StrContains(weights, s.run_id()));
  EXPECT_GT(weights.size(), s.parameters() * 4);
  const auto sample = world.Start({"sample", world.PathOf("run.textproto"), "--weights",
                                   world.PathOf("state/final.safetensors"), "--count", "40"});
  EXPECT_EQ(sample->Wait(), 0) << sample->output();
  EXPECT_GE(sample->standard_output().size(), 40);

  world.Await("everyone to have left", [](const RunStatus& s) {
    return SiteOf(s, "a").state() == "left" && SiteOf(s, "b").state() == "left" &&
           SiteOf(s, "c").state() == "left";
  });
  world.coordinator().Signal(SIGTERM);
  EXPECT_EQ(world.coordinator().Wait(), 0) << world.coordinator().output();
}

TEST(WholeRunTest, AKilledWorkerComesBackAsANewIncarnationAndItsLossIsCounted) {
  RunWorld world;
  RunShape shape;
  shape.rounds = 10;
  shape.steps = 10;
  ASSERT_TRUE(world.StartCoordinator(shape));
  for (const char* site : {"a", "b", "c"}) world.StartWorker(site, kPaced);
  world.AwaitRounds(2);

  // A second worker by the name of one that lives.
  const auto impostor =
      world.Start({"worker", world.url(), "--site", "b", "--data", world.PathOf("text.txt")});
  EXPECT_EQ(impostor->Wait(), 2) << impostor->output();
  EXPECT_TRUE(absl::StrContains(impostor->standard_error(), "refused by the coordinator: site: "));
  EXPECT_TRUE(absl::StrContains(impostor->standard_error(), "site name b is held by b/1"))
      << impostor->standard_error();

  world.Await("b to be in the midst of a round", [](const RunStatus& s) {
    const SiteStatus b = SiteOf(s, "b");
    return b.progress().inner_steps() - b.contributed_steps() >= 4 && !b.has_contributed();
  });
  world.worker("b").Kill();
  EXPECT_EQ(world.worker("b").Wait(), 128 + SIGKILL);
  world.StartWorker("b", kPaced);
  const RunStatus status = world.AwaitFinished();
  world.ExpectWorkersDone();
  ExpectAllAgree(status);
  EXPECT_EQ(status.rounds_committed(), 10);
  EXPECT_EQ(SiteOf(status, "a").incarnation(), 1);
  EXPECT_EQ(SiteOf(status, "b").incarnation(), 2);
  EXPECT_GT(SiteOf(status, "b").forfeited_steps(), 0);
  EXPECT_GT(status.forfeited_steps(), 0) << world.Said() << status.ShortDebugString();
  // It took part before and after.
  EXPECT_GE(SiteOf(status, "b").rounds_included(), 4) << status.ShortDebugString();
}

TEST(WholeRunTest, SeparateResidualsTrainToTheEndThoughAWorkerIsKilled) {
  RunWorld world;
  RunShape shape;
  shape.rounds = 10;
  shape.more = "exchange { error_feedback: SEPARATE contribution_codec: \"topk(k=256)|levels(bits=2)\" }";
  ASSERT_TRUE(world.StartCoordinator(shape));
  for (const char* site : {"a", "b", "c"}) world.StartWorker(site, kPaced);
  EXPECT_EQ(world.AwaitRounds(2).error_feedback(), "SEPARATE x 0.95");
  world.worker("b").Kill();
  EXPECT_EQ(world.worker("b").Wait(), 128 + SIGKILL);
  world.StartWorker("b", kPaced);
  const RunStatus status = world.AwaitFinished();
  world.ExpectWorkersDone();
  ExpectAllAgree(status);
  EXPECT_EQ(status.rounds_committed(), 10);
  EXPECT_EQ(SiteOf(status, "b").incarnation(), 2);
  EXPECT_GE(SiteOf(status, "a").rounds_included(), 8) << status.ShortDebugString();
  EXPECT_GT(SiteOf(status, "a").progress().forfeited_square_sum(), 0) << "the decay gives up its share";
  EXPECT_LT(status.held_out_loss_end(), status.held_out_loss_start() - 0.3);
}

TEST(WholeRunTest, ASlowSiteDoesAThirdOfTheStepsAndIsStillInMostRounds) {
  RunWorld world;
  RunShape shape;
  shape.rounds = 16;
  shape.steps = 9;
  ASSERT_TRUE(world.StartCoordinator(shape));
  for (const char* site : {"a", "b"}) world.StartWorker(site, {"--max-tokens-per-second", "1200"});
  world.StartWorker("slow", {"--max-tokens-per-second", "400"});
  int64_t assigned_slow = 0, assigned_fast = 0;
  world.Await("a round after the speeds are known", [&](const RunStatus& s) {
    assigned_slow = SiteOf(s, "slow").inner_steps_assigned();
    assigned_fast = SiteOf(s, "a").inner_steps_assigned();
    return s.rounds_committed() >= 8;
  });
  EXPECT_NEAR(assigned_fast, 9, 1);
  EXPECT_NEAR(assigned_slow, 3, 1);
  const RunStatus status = world.AwaitFinished();
  world.ExpectWorkersDone();
  ExpectAllAgree(status);
  const SiteStatus slow = SiteOf(status, "slow"), fast = SiteOf(status, "a");
  EXPECT_GE(slow.rounds_included(), 12) << status.ShortDebugString();
  EXPECT_NEAR(static_cast<double>(slow.contributed_steps()) / fast.contributed_steps(), 1.0 / 3, 0.12);
}

TEST(WholeRunTest, SitesMayJoinAndLeaveMidRun) {
  RunWorld world;
  RunShape shape;
  shape.rounds = 20;
  shape.sites = 2;
  ASSERT_TRUE(world.StartCoordinator(shape));
  for (const char* site : {"a", "b"}) world.StartWorker(site, kPaced);
  world.AwaitRounds(3);
  world.StartWorker("late", kPaced);
  world.Await("the newcomer to be in a round",
              [](const RunStatus& s) { return SiteOf(s, "late").rounds_included() >= 2; });
  world.worker("a").Signal(SIGTERM);
  EXPECT_EQ(world.worker("a").Wait(), 0) << world.worker("a").output();
  const RunStatus gone = world.Await("the leaver to be gone",
                                     [](const RunStatus& s) { return SiteOf(s, "a").state() == "left"; });
  const int64_t included = SiteOf(gone, "a").rounds_included();
  EXPECT_GE(included, 3);
  const RunStatus status = world.AwaitFinished();
  world.ExpectWorkersDone();
  ExpectAllAgree(status);
  EXPECT_EQ(status.rounds_aborted(), 0) << "nobody died";
  EXPECT_LE(SiteOf(status, "a").rounds_included(), included + 1);
  EXPECT_EQ(status.commits(status.commits_size() - 1).included(), 2);
}

TEST(WholeRunTest, AFlippedAnchorBitIsNamedAndMended) {
  RunWorld world;
  RunShape shape;
  shape.rounds = 12;
  ASSERT_TRUE(world.StartCoordinator(shape));
  for (const char* site : {"a", "c"}) world.StartWorker(site, kPaced);
  RunWorld::Arguments planted = kPaced;
  planted.insert(planted.end(), {"--test-flip-anchor-bit-after-round", "4"});
  world.StartWorker("b", planted);
  const RunStatus status = world.AwaitFinished();
  world.ExpectWorkersDone();
  EXPECT_EQ(status.phase(), "FINISHED");
  EXPECT_EQ(status.rounds_committed(), 12);
  EXPECT_GE(status.digests_deviating(), 1);
  EXPECT_LE(status.digests_deviating(), 3) << "it was mended the first time";
  EXPECT_GE(world.coordinator().AwaitLine("site b"), 0);
  const std::string said = world.coordinator().output();
  EXPECT_TRUE(absl::StrContains(said, "is resynced")) << said;
  EXPECT_TRUE(absl::StrContains(world.worker("b").output(), "deviates")) << world.worker("b").output();
  EXPECT_GE(SiteOf(status, "b").rounds_included(), 8)
      << "it took part again afterwards" << world.Said() << status.ShortDebugString();
  EXPECT_EQ(SiteOf(status, "b").incarnation(), 1);
  // Everyone ended on the anchor that was committed last.
  EXPECT_EQ(SiteOf(status, "b").progress().anchor_round(), status.round()) << status.ShortDebugString();
}

}  // namespace
}  // namespace isthmus
