#include "daemon/app/sim/sim_run.h"

#include "absl/strings/str_cat.h"
#include "daemon/base/logging.h"
#include "daemon/store/snapshot.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

SimRunOptions ThreeSites(int64_t rounds) {
  InitLogging(LogForm::kText, LogLevel::kError);
  SimRunOptions o;
  o.run = SimRunFile(rounds, 5);
  o.run.mutable_rounds()->set_start_sites(3);
  o.planned_rounds = rounds;
  for (const char* name : {"a", "b", "c"}) {
    SimSite s;
    s.name = name;
    o.sites.push_back(s);
  }
  return o;
}

// Of snapshot 0.
int64_t SnapshotBytesOf(SimRun& run) {
  const std::unique_ptr<DeviceOps> ops = MakeCpuDeviceOps();
  AnchorKeeper first(run.table(), ops.get());
  first.BeginNew(run.options().run.seed());
  return SnapshotBytes(run.table(), first.Info(), first.Values());
}

void StartAll(SimRun* run) {
  ASSERT_TRUE(run->StartCoordinator().ok());
  for (const SimSite& s : run->options().sites) run->StartWorker(s.name);
}

TEST(SimRunTest, ThreeSitesFinishAndAgree) {
  SimRun run(ThreeSites(20));
  StartAll(&run);
  ASSERT_TRUE(run.RunUntilFinished(absl::Hours(1)));
  const RunStatus status = run.coordinator()->role->Status(true);
  EXPECT_EQ(status.rounds_committed(), 20);
  EXPECT_EQ(status.rounds_aborted(), 0);
  EXPECT_EQ(status.digests_deviating(), 0);
  EXPECT_GT(status.digests_compared(), 50);
  EXPECT_LT(status.held_out_loss_end(), 0.1 * status.held_out_loss_start());
  run.loop().RunUntil(run.clock().SteadyNow() + absl::Seconds(10));
  for (const auto& [site, process] : run.workers()) {
    EXPECT_TRUE(process->ended.ok()) << site << ": " << process->ended;
  }
}

TEST(SimRunTest, SitesThatSawTheRunToItsEndHaveLeftAndAreNotDead) {
  SimRun run(ThreeSites(5));
  StartAll(&run);
  ASSERT_TRUE(run.RunUntilFinished(absl::Hours(1)));
  run.loop().RunUntil(run.clock().SteadyNow() + absl::Seconds(30));
  const RunStatus status = run.coordinator()->role->Status(true);
  ASSERT_EQ(status.sites_size(), 3);
  for (const SiteStatus& s : status.sites()) EXPECT_EQ(s.state(), "left") << s.site();
}

TEST(SimRunTest, WithoutFaultsEveryByteOfDataCrossesOnce) {
  constexpr int64_t kEnvelope = 12;  // around a piece, a request or an answer, in the simulation
  SimRunOptions o = ThreeSites(8);
  o.run.mutable_rounds()->set_quorum(3);
  o.run.mutable_rounds()->set_minimum(3);
  SimRun run(o);
  StartAll(&run);
  ASSERT_TRUE(run.RunUntilFinished(absl::Hours(1)));
  const std::vector<CommitRecord>& commits = run.coordinator()->role->commits();
  ASSERT_EQ(commits.size(), 8u);
  int64_t updates = 0;
  for (const CommitRecord& c : commits) updates += c.update_bytes() + kEnvelope;
  for (int site = 0; site < 3; ++site) {
    const std::string name = o.sites[site].name;
    int64_t frames = 0;
    for (const CommitRecord& c : commits) {
      ASSERT_EQ(c.included_size(), 3);
      frames += c.included(site).frame_bytes();
    }
    const SiteTraffic& traffic = run.network().traffic(name);
    // Down: snapshot 0, each update once, two answers to each upload.
    const int64_t snapshot = traffic.data_down - updates - 2 * 8 * kEnvelope - kEnvelope;
    EXPECT_EQ(snapshot, SnapshotBytesOf(run)) << name;
    // Up: each frame once, behind an offer with its header; a request for each blob.
    const int64_t around = traffic.data_up - frames;
    EXPECT_GT(around, 8 * 2 * kEnvelope);
    EXPECT_LT(around, 8 * (2 * kEnvelope + 200) + 9 * (kEnvelope + 60)) << name;
  }
}

TEST(SimRunTest, AKilledWorkerComesBackUnderItsNameWithANewIncarnation) {
  SimRun run(ThreeSites(20));
  StartAll(&run);
  run.loop().RunUntil(run.clock().SteadyNow() + absl::Seconds(34));
  run.KillWorker("b");
  run.loop().RunUntil(run.clock().SteadyNow() + absl::Seconds(20));
  run.StartWorker("b");
  ASSERT_TRUE(run.RunUntilFinished(absl::Hours(1)));
  const RunStatus status = run.coordinator()->role->Status(true);
  EXPECT_EQ(status.rounds_committed(), 20);
  for (const SiteStatus& s : status.sites()) EXPECT_EQ(s.incarnation(), s.site() == "b" ? 2 : 1) << s.site();
  EXPECT_GT(status.forfeited_steps(), 0);
}

TEST(SimRunTest, ACoordinatorKilledMidRoundGoesOnWithTheSameRunAndRound) {
  SimRun run(ThreeSites(20));
  StartAll(&run);
  run.loop().RunUntil(run.clock().SteadyNow() + absl::Seconds(32));
  const RunStatus before = run.coordinator()->role->Status(true);
  ASSERT_GT(before.rounds_committed(), 2);
  run.KillCoordinator();
  run.loop().RunUntil(run.clock().SteadyNow() + absl::Seconds(2));
  ASSERT_TRUE(run.StartCoordinator().ok());
  const RunStatus after = run.coordinator()->role->Status(true);
  EXPECT_EQ(after.run_id(), before.run_id());
  EXPECT_EQ(after.round(), before.round());
  EXPECT_EQ(after.rounds_committed(), before.rounds_committed());
  EXPECT_EQ(after.state_digest(), before.state_digest());
  ASSERT_TRUE(run.RunUntilFinished(absl::Hours(1)));
  const RunStatus end = run.coordinator()->role->Status(true);
  EXPECT_EQ(end.rounds_committed(), 20);
  for (const SiteStatus& s : end.sites()) EXPECT_EQ(s.incarnation(), 1) << s.site();
}

TEST(SimRunTest, ACoordinatorThatWasAwayForLongHasItsSitesBackWithinSeconds) {
  SimRun run(ThreeSites(20));
  StartAll(&run);
  run.loop().RunUntil(run.clock().SteadyNow() + absl::Seconds(32));
  run.KillCoordinator();
  run.loop().RunUntil(run.clock().SteadyNow() + absl::Minutes(2));
  ASSERT_TRUE(run.StartCoordinator().ok());
  run.loop().RunUntil(run.clock().SteadyNow() + absl::Seconds(4));
  const RunStatus status = run.coordinator()->role->Status(false);
  ASSERT_EQ(status.sites_size(), 3);
  // Progress is not durable: it is there once the site has spoken.
  for (const SiteStatus& s : status.sites()) EXPECT_GT(s.progress().inner_steps(), 0) << s.site();
}

TEST(SimRunTest, WhatASiteCarriesThatMissesTheLastRoundIsForfeitedAndCounted) {
  SimRunOptions o = ThreeSites(4);
  o.run.mutable_rounds()->mutable_longest_round()->set_seconds(60);
  SimRun run(o);
  StartAll(&run);
  // No frame of c arrives from the third round on, though its session stays.
  while (run.coordinator()->role->commits().size() < 3) ASSERT_TRUE(run.RunNext());
  Fault broken;
  broken.kind = FaultKind::kBroken;
  broken.target = FaultTarget::kUpload;
  broken.site = "c";
  broken.budget = 1000000;
  run.network().Inject(broken);
  ASSERT_TRUE(run.RunUntilFinished(absl::Hours(2)));
  const RunStatus status = run.coordinator()->role->Status(true);
  ASSERT_EQ(status.commits(3).included(), 2);
  for (const SiteStatus& s : status.sites()) {
    if (s.site() == "c") {
      EXPECT_GE(s.forfeited_steps(), 5) << "its steps of the last round at least";
    }
    if (s.site() != "c") {
      EXPECT_EQ(s.forfeited_steps(), 0) << s.site();
    }
  }
}

TEST(SimRunTest, AFinalEvaluationThatTakesMinutesIsWaitedFor) {
  SimRunOptions o = ThreeSites(6);
  // Half a step for each of its batches: minutes for the whole part.
  for (SimSite& s : o.sites) s.steps_per_second = 0.02;
  o.run.mutable_rounds()->mutable_longest_round()->set_seconds(3600);
  SimRun run(o);
  StartAll(&run);
  ASSERT_TRUE(run.RunUntilFinished(absl::Hours(8)));
  const RunStatus status = run.coordinator()->role->Status(true);
  EXPECT_EQ(status.rounds_committed(), 6);
  EXPECT_GT(status.held_out_loss_end(), 0);
}

TEST(SimRunTest, AFlippedAnchorBitIsNamedAndTheSiteResynced) {
  SimRunOptions o = ThreeSites(12);
  o.sites[1].flip_anchor_bit_after_round = 4;
  SimRun run(o);
  StartAll(&run);
  ASSERT_TRUE(run.RunUntilFinished(absl::Hours(1)));
  const RunStatus status = run.coordinator()->role->Status(true);
  EXPECT_EQ(status.rounds_committed(), 12);
  EXPECT_GE(status.digests_deviating() + status.contributions_refused(), 1);
  EXPECT_EQ(run.worker("b")->worker->replica()->AnchorDigest().ToBytes(), status.state_digest());
}

TEST(SimRunTest, SitesJoinAndLeaveMidRun) {
  SimRunOptions o = ThreeSites(20);
  SimSite d;
  d.name = "d";
  o.sites.push_back(d);
  SimRun run(o);
  ASSERT_TRUE(run.StartCoordinator().ok());
  for (const char* site : {"a", "b", "c"}) run.StartWorker(site);
  run.loop().RunUntil(run.clock().SteadyNow() + absl::Seconds(30));
  run.StartWorker("d");
  run.LeaveWorker("a");
  ASSERT_TRUE(run.RunUntilFinished(absl::Hours(1)));
  EXPECT_TRUE(run.worker("a")->ended.ok()) << run.worker("a")->ended;
  const RunStatus status = run.coordinator()->role->Status(true);
  EXPECT_EQ(status.rounds_committed(), 20);
  for (const SiteStatus& s : status.sites()) {
    if (s.site() == "d") {
      EXPECT_GT(s.rounds_included(), 5);
    }
    if (s.site() == "a") {
      EXPECT_EQ(s.state(), "left");
    }
  }
}

}  // namespace
}  // namespace isthmus
