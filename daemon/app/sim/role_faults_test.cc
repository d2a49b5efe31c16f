// One story for each way in which the roles went wrong under faults, so that they do not go wrong that way
// again.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/app/sim/schedule_run.h"
#include "daemon/base/logging.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

using ::testing::ElementsAreArray;
using ::testing::StartsWith;

SimRunOptions Sites(int64_t sites, int64_t rounds) {
  InitLogging(LogForm::kText, LogLevel::kError);
  SimRunOptions o;
  o.run = SimRunFile(rounds, 5);
  o.run.mutable_rounds()->set_start_sites(sites);
  o.run.mutable_rounds()->mutable_longest_round()->set_seconds(60);
  o.planned_rounds = rounds;
  for (int64_t i = 0; i < sites; ++i) {
    SimSite s;
    s.name = std::string(1, static_cast<char>('a' + i));
    o.sites.push_back(s);
  }
  return o;
}

void StartAll(SimRun* run) {
  ASSERT_TRUE(run->StartCoordinator().ok());
  for (const SimSite& s : run->options().sites) run->StartWorker(s.name);
}

RunStatus StatusOf(SimRun* run) { return run->coordinator()->role->Status(true); }

int64_t ContributedOf(SimRun* run) {
  int64_t n = 0;
  const RunStatus status = StatusOf(run);
  for (const SiteStatus& s : status.sites()) n += s.has_contributed();
  return n;
}

// Runs until `done` holds between two events; false after an hour of fake time.
template <typename Done>
bool RunUntil(SimRun* run, Done done) {
  const absl::Time end = run->clock().SteadyNow() + absl::Hours(1);
  while (!done()) {
    if (run->clock().SteadyNow() >= end || !run->RunNext()) return false;
  }
  return true;
}

TEST(RoleFaultsTest, ARestartedCoordinatorGetsTheFramesThatItsFormerSelfHeldInMemory) {
  SimRunOptions o = Sites(3, 8);
  o.sites[2].steps_per_second = 0.2;  // so that the round stays open for the third
  SimRun run(o);
  StartAll(&run);
  ASSERT_TRUE(RunUntil(&run, [&] { return ContributedOf(&run) == 2; }));
  const int64_t round = StatusOf(&run).round();
  run.KillCoordinator();
  ASSERT_TRUE(run.StartCoordinator().ok());
  const absl::Time restarted = run.clock().SteadyNow();
  ASSERT_TRUE(RunUntil(&run, [&] { return ContributedOf(&run) == 2; }));
  EXPECT_LT(run.clock().SteadyNow() - restarted,
            absl::Seconds(12));  // a dial's back-off, not a round's deadline
  ASSERT_TRUE(RunUntil(&run, [&] { return StatusOf(&run).rounds_committed() > 0; }));
  EXPECT_EQ(StatusOf(&run).commits(0).round(), round);
  EXPECT_EQ(StatusOf(&run).commits(0).included(), 3);
}

TEST(RoleFaultsTest, AMemberThatDiedWhileItsRoundWasOpenStaysDeadOverARestart) {
  SimRunOptions o = Sites(3, 8);
  SimRun run(o);
  StartAll(&run);
  ASSERT_TRUE(
      RunUntil(&run, [&] { return StatusOf(&run).rounds_committed() == 1 && StatusOf(&run).round() == 2; }));
  run.KillWorker("c");
  ASSERT_TRUE(RunUntil(&run, [&] {
    const RunStatus status = StatusOf(&run);
    return status.sites_size() == 3 && status.sites(2).state() == "dead";
  }));
  // Its death is written down by now; the round may be over by then, so the next one is its last.
  run.loop().RunUntil(run.clock().SteadyNow() + absl::Milliseconds(50));
  run.KillCoordinator();
  ASSERT_TRUE(run.StartCoordinator().ok());
  const RunStatus status = StatusOf(&run);
  ASSERT_EQ(status.sites_size(), 3);
  EXPECT_EQ(status.sites(2).site(), "c");
  EXPECT_EQ(status.sites(2).state(), "dead");
  EXPECT_EQ(status.sites(2).incarnation(), 1);
  EXPECT_EQ(status.sites(2).rounds_included(), 1);
  for (const DataLease& lease : run.coordinator()->role->leases().Outstanding())
    EXPECT_NE(lease.life.name, "c");
}

TEST(RoleFaultsTest, ASuspectThatSpeaksOpensTheRoundThatWaitedForIt) {
  SimRun run(Sites(1, 6));
  StartAll(&run);
  ASSERT_TRUE(RunUntil(&run, [&] { return StatusOf(&run).rounds_committed() == 1; }));
  // Silent for long enough to be suspect, not to be dead, wherever in the round that falls.
  for (int i = 0; i < 20; ++i) {
    run.network().Clog("a", FaultSide::kUp, absl::Milliseconds(4200));
    run.loop().RunUntil(run.clock().SteadyNow() + absl::Milliseconds(6370));
  }
  EXPECT_TRUE(run.RunUntilFinished(absl::Minutes(5)));
}

TEST(RoleFaultsTest, AFinishedRunThatIsOpenedAgainSaysSo) {
  SimRun run(Sites(2, 3));
  StartAll(&run);
  ASSERT_TRUE(run.RunUntilFinished(absl::Hours(1)));
  const RunStatus before = StatusOf(&run);
  run.KillCoordinator();
  ASSERT_TRUE(run.StartCoordinator().ok());
  EXPECT_TRUE(run.RunUntilFinished(absl::Seconds(10)));
  const RunStatus status = StatusOf(&run);
  EXPECT_EQ(status.phase(), "FINISHED");
  EXPECT_EQ(status.rounds_committed(), 3);
  EXPECT_EQ(status.digests_compared(), before.digests_compared());
  for (int i = 2; i < 4; ++i)
    EXPECT_EQ(status.traffic(i).DebugString(), before.traffic(i).DebugString()) << "updates, snapshots";
  // What its sites did is still told.
  ASSERT_EQ(status.sites_size(), 2);
  for (const SiteStatus& s : status.sites()) {
    EXPECT_EQ(s.state(), "away") << s.site();
    EXPECT_EQ(s.rounds_included(), 3) << s.site();
    EXPECT_EQ(s.contributed_steps(), s.site() == "a" ? 12 : 15) << "a evaluates";
  }
}

TEST(RoleFaultsTest, ASnapshotThatArrivesDamagedIsFetchedAgain) {
  SimRunOptions o = Sites(2, 6);
  SimRun run(o);
  Fault flip;
  flip.kind = FaultKind::kBytesFlipped;
  flip.target = FaultTarget::kFetch;
  flip.side = FaultSide::kDown;
  flip.site = "b";
  flip.budget = 3;
  run.network().Inject(flip);
  StartAll(&run);
  ASSERT_TRUE(run.RunUntilFinished(absl::Hours(1)));
  EXPECT_EQ(run.network().struck(FaultKind::kBytesFlipped), 3);
  run.loop().RunUntil(run.clock().SteadyNow() + absl::Seconds(5));
  EXPECT_TRUE(run.worker("b")->ended.ok()) << run.worker("b")->ended;
}

TEST(RoleFaultsTest, AHelloThatComesTwiceIsOneNewcomer) {
  SimRun run(Sites(2, 4));
  Fault twice;
  twice.kind = FaultKind::kDuplicated;
  twice.target = FaultTarget::kControl;
  twice.site = "a";
  twice.budget = 2;
  run.network().Inject(twice);
  StartAll(&run);
  ASSERT_TRUE(run.RunUntilFinished(absl::Hours(1)));
  const RunStatus status = StatusOf(&run);
  for (const SiteStatus& s : status.sites()) EXPECT_EQ(s.incarnation(), 1) << s.site();
}

TEST(RoleFaultsTest, ADamagedFrameIsAskedForAgainWhileItsUploadIsStillBeingAnswered) {
  SimRunOptions o = Sites(2, 4);
  o.run.mutable_rounds()->set_quorum(2);
  o.run.mutable_rounds()->set_minimum(2);
  SimRun run(o);
  Fault flip;
  flip.kind = FaultKind::kBytesFlipped;
  flip.target = FaultTarget::kUpload;
  flip.site = "a";
  flip.is_undetected = true;
  run.network().Inject(flip);
  Fault slow;  // the answer comes after the coordinator's word over the session
  slow.kind = FaultKind::kDelayed;
  slow.target = FaultTarget::kUpload;
  slow.side = FaultSide::kDown;
  slow.site = "a";
  slow.length = absl::Seconds(3);
  run.network().Inject(slow);
  StartAll(&run);
  ASSERT_TRUE(RunUntil(&run, [&] { return StatusOf(&run).rounds_committed() == 1; }));
  EXPECT_EQ(StatusOf(&run).rounds_aborted(), 0);
  EXPECT_LT(StatusOf(&run).commits(0).round_seconds(), 30);
}

TEST(RoleFaultsTest, AResyncThatASessionCutsShortTakesNoFramesRight) {
  FaultSchedule s;
  s.options = Sites(3, 10);
  for (const SimSite& site : s.options.sites) s.at_start.push_back(site.name);
  s.calm = absl::Minutes(2);
  s.patience = absl::Minutes(10);
  FaultAct act;
  act.site = "b";
  for (int64_t at = 12; at < 40; at += 6) {
    act.kind = FaultAct::Kind::kFlippedAnchorBit;
    act.at = absl::Seconds(at);
    act.count = at;
    s.acts.push_back(act);
    act.kind = FaultAct::Kind::kBreakSession;
    for (int64_t later = 0; later < 4; ++later) {
      act.at = absl::Seconds(at) + absl::Milliseconds(900 * later);
      act.after_events = 7 * later;
      s.acts.push_back(act);
    }
    act.after_events = 0;
  }
  const ScheduleOutcome outcome = RunSchedule(s, nullptr);
  EXPECT_TRUE(outcome.violations.empty()) << outcome.Text(0);
}

TEST(RoleFaultsTest, AFrameThatIsUnderWayInALifeThatIsOverIsSentAgainInTheNext) {
  SimRunOptions o = Sites(2, 16);
  o.run.mutable_rounds()->set_minimum(1);
  o.sites[0].link.latency = absl::Milliseconds(30);
  SimRun run(o);
  StartAll(&run);
  ASSERT_TRUE(RunUntil(&run, [&] { return StatusOf(&run).rounds_committed() == 1; }));
  // Nothing passes up until the site is given up; what is under way belongs to its first life.
  run.network().Clog("a", FaultSide::kUp, absl::Seconds(20));
  ASSERT_TRUE(run.RunUntilFinished(absl::Minutes(30)));
  const RunStatus status = StatusOf(&run);
  ASSERT_EQ(status.sites(0).site(), "a");
  EXPECT_EQ(status.sites(0).incarnation(), 2);
  EXPECT_GE(status.sites(0).rounds_included(), 5);
}

// Rows of the ledger and what moved since, by class.
TEST(RoleFaultsTest, TrafficByClassAddsUpOverARestart) {
  SimRunOptions o = Sites(2, 8);
  o.run.mutable_exchange()->set_snapshot_codec("fp32|zstd(3)");
  SimRun run(o);
  StartAll(&run);
  ASSERT_TRUE(RunUntil(&run, [&] { return StatusOf(&run).rounds_committed() == 4; }));
  run.KillCoordinator();
  ASSERT_TRUE(run.StartCoordinator().ok());
  ASSERT_TRUE(run.RunUntilFinished(absl::Hours(1)));
  const RunStatus status = StatusOf(&run);
  ASSERT_EQ(status.traffic_size(), 6);
  TrafficTally all, rows;
  int64_t up = 0, updates = 0;
  for (const TrafficBytes& row : status.traffic()) all.Add(row);
  for (const CommitSummary& commit : status.commits()) {
    for (const TrafficBytes& row : commit.traffic()) rows.Add(row);
    up += commit.bytes_up();
  }
  for (const CommitRecord& commit : run.coordinator()->role->commits()) updates += commit.update_bytes();
  EXPECT_GE(all.up(TrafficBytes::CONTRIBUTION), up);
  EXPECT_LE(all.up(TrafficBytes::CONTRIBUTION), up + up / 2) << "frames that were sent again";
  // Each update to both sites; those on the way when the coordinator died are in no row.
  EXPECT_LE(all.down(TrafficBytes::UPDATE), 2 * updates);
  EXPECT_GE(all.down(TrafficBytes::UPDATE), updates);
  EXPECT_GT(all.down(TrafficBytes::SNAPSHOT), 0);
  EXPECT_EQ(all.down(TrafficBytes::ACTIVATION), 0);
  EXPECT_GT(rows.up(TrafficBytes::CONTROL), 0);
  EXPECT_LE(rows.down(TrafficBytes::UPDATE), all.down(TrafficBytes::UPDATE));
  EXPECT_EQ(status.traffic(1).codec(), o.codec);
  EXPECT_EQ(status.traffic(2).codec(), "exact");
  EXPECT_EQ(status.traffic(3).codec(), "fp32|zstd(3)");
  EXPECT_FALSE(status.is_update_recompressed());
}

// Loses what the hub carries when asked for it.
class ForgetfulLedger : public RecordingLedger {
 public:
  using RecordingLedger::RecordingLedger;
  absl::StatusOr<std::shared_ptr<const BlobSource>> OpenBlob(const BlobName& name) override {
    if (name.kind == RESIDUAL) return absl::NotFoundError("no such file");
    return ledger_->OpenBlob(name);
  }
};

// Keeps how the run was said to have ended.
class EndLedger : public RecordingLedger {
 public:
  EndLedger(std::unique_ptr<Ledger> ledger, UpdateBytes* updates, std::string* end)
      : RecordingLedger(std::move(ledger), updates), end_(end) {}
  absl::Status Write(const LedgerWrite& write) override {
    for (const EventRecord& e : write.events) {
      if (e.kind() == EventRecord::FINISHED) *end_ = e.reason();
    }
    return RecordingLedger::Write(write);
  }

 private:
  std::string* const end_;
};

TEST(RoleFaultsTest, ARunWhoseLastRoundIsNotDenseSaysWhatItsWeightsLack) {
  for (bool is_dense : {true, false}) {
    SimRunOptions o = Sites(2, 3);
    o.run.mutable_rounds()->set_dense_last_round(is_dense);
    UpdateBytes updates;
    std::string end;
    o.wrap_ledger = [&](std::unique_ptr<Ledger> ledger) {
      return std::make_unique<EndLedger>(std::move(ledger), &updates, &end);
    };
    SimRun run(o);
    StartAll(&run);
    ASSERT_TRUE(run.RunUntilFinished(absl::Hours(1)));
    EXPECT_EQ(end, is_dense
                       ? "the run is over"
                       : "the run is over; its last round was not dense, so what sites still had to send "
                         "is not in the weights");
  }
}

TEST(RoleFaultsTest, AResidualLostAtARestartIsForfeitedOnceAndTheRunGoesOn) {
  SimRunOptions o = Sites(2, 8);
  o.run.mutable_exchange()->set_update_codec("topk(k=64,block=4096)|levels(bits=1)|gaps|zstd(1)");
  UpdateBytes updates;
  o.wrap_ledger = [&updates](std::unique_ptr<Ledger> ledger) {
    return std::make_unique<ForgetfulLedger>(std::move(ledger), &updates);
  };
  SimRun run(o);
  StartAll(&run);
  ASSERT_TRUE(RunUntil(&run, [&] { return StatusOf(&run).rounds_committed() == 4; }));
  EXPECT_TRUE(StatusOf(&run).is_update_recompressed());
  const double norm = StatusOf(&run).residual_norm();
  EXPECT_GT(norm, 0);
  for (int restart = 0; restart < 2; ++restart) {
    run.KillCoordinator();
    ASSERT_TRUE(run.StartCoordinator().ok());
    run.loop().RunUntil(run.clock().SteadyNow() + absl::Milliseconds(20));
    EXPECT_EQ(StatusOf(&run).residual_norm(), 0);
    EXPECT_NEAR(StatusOf(&run).residual_forfeited_square_sum(), norm * norm, 1e-9 * norm * norm);
  }
  ASSERT_TRUE(run.RunUntilFinished(absl::Hours(1)));
  EXPECT_EQ(StatusOf(&run).digests_deviating(), 0);
  EXPECT_NEAR(StatusOf(&run).residual_forfeited_square_sum(), norm * norm, 1e-9 * norm * norm);
  EXPECT_LT(StatusOf(&run).residual_norm(), 1e-12) << "the dense last round flushes";
}

TEST(RoleFaultsTest, StepsThatWereCommittedAreNotForfeitedAfterARestartOfTheCoordinator) {
  SimRunOptions o = Sites(2, 10);
  SimRun run(o);
  StartAll(&run);
  ASSERT_TRUE(RunUntil(&run, [&] { return StatusOf(&run).rounds_committed() == 5; }));
  run.KillCoordinator();
  ASSERT_TRUE(run.StartCoordinator().ok());
  ASSERT_TRUE(RunUntil(&run, [&] {
    const RunStatus status = StatusOf(&run);
    return status.sites_size() == 2 && status.sites(1).progress().inner_steps() > 0;
  }));
  const int64_t carried = run.worker("b")->worker->inner_steps() - run.worker("b")->worker->settled_steps();
  run.KillWorker("b");
  run.loop().RunUntil(run.clock().SteadyNow() + absl::Seconds(8));
  run.StartWorker("b");
  ASSERT_TRUE(run.RunUntilFinished(absl::Hours(1)));
  EXPECT_LE(StatusOf(&run).forfeited_steps(), carried + 3);
}

// From round 4 on, another site in each round needs a third longer for a step than the rest. How many sites
// each round included.
std::vector<int64_t> IncludedWithSlowSitesInTurn(int64_t sites, int64_t rounds) {
  SimRunOptions o = Sites(sites, rounds);
  o.run.mutable_rounds()->set_inner_steps_per_round(20);
  o.run.mutable_evaluation()->set_every_rounds(0);
  SimRun run(o);
  StartAll(&run);
  int64_t round = 0;
  while (!run.is_finished() && run.RunNext()) {
    if (const int64_t open = StatusOf(&run).round(); open != std::exchange(round, open)) {
      for (int64_t site = 0; site < sites; ++site) {
        const bool is_slow = round > 3 && round % sites == site;
        run.SetSpeed(o.sites[site].name, is_slow ? 0.75 : 1.0);
      }
    }
  }
  std::vector<int64_t> included;
  const RunStatus status = StatusOf(&run);
  for (const CommitSummary& commit : status.commits()) included.push_back(commit.included());
  return included;
}

// The first three rounds teach a grace of next to nothing. A site that misses a round makes its frame for the
// next one, so no frame is ever late: only what is learned from the missed rounds ends it.
TEST(RoleFaultsTest, ThreeSitesThatAreSlowInTurnAreWaitedForOnceGraceHasSeenThemMiss) {
  EXPECT_THAT(IncludedWithSlowSitesInTurn(3, 24),
              ElementsAreArray({3, 3, 3, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3}));
}

TEST(RoleFaultsTest, FiveSitesThatAreSlowInTurnAreWaitedForOnceGraceHasSeenThemMiss) {
  EXPECT_THAT(IncludedWithSlowSitesInTurn(5, 24),
              ElementsAreArray({5, 5, 5, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5}));
}

// What a report says of the past must not depend on whether the coordinator was killed since.
TEST(RoleFaultsTest, ARestartedCoordinatorSaysOfRoundsAndSitesWhatItSaidBefore) {
  SimRunOptions o = Sites(4, 16);
  o.run.mutable_exchange()->set_error_feedback(ExchangeConfig::SEPARATE);
  o.run.mutable_exchange()->set_carry_decay(0.95);
  SimRun run(o);
  StartAll(&run);
  // Two rounds close without d: its frames are on a link that carries nothing.
  ASSERT_TRUE(RunUntil(&run, [&] { return StatusOf(&run).rounds_committed() == 4; }));
  Fault broken;
  broken.kind = FaultKind::kBroken;
  broken.target = FaultTarget::kUpload;
  broken.site = "d";
  broken.budget = 60;
  run.network().Inject(broken);
  // Between the evaluation of a round and the end of the next, with nothing on its way.
  ASSERT_TRUE(RunUntil(&run, [&] {
    const RunStatus status = StatusOf(&run);
    return status.rounds_committed() == 9 && status.commits(8).held_out_tokens() > 0;
  }));
  const RunStatus before = StatusOf(&run);
  run.KillCoordinator();
  ASSERT_TRUE(run.StartCoordinator().ok());
  const RunStatus after = StatusOf(&run);
  ASSERT_EQ(after.rounds_committed(), 9);
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(after.commits(i).DebugString(), before.commits(i).DebugString());
    EXPECT_GT(after.commits(i).bytes_up(), 0);
    EXPECT_GT(after.commits(i).bytes_down(), 0);
  }
  ASSERT_EQ(after.sites_size(), before.sites_size());
  for (int i = 0; i < before.sites_size(); ++i) {
    const SiteStatus &was = before.sites(i), &is = after.sites(i);
    EXPECT_EQ(is.site(), was.site());
    EXPECT_EQ(is.rounds_included(), was.rounds_included()) << is.site();
    EXPECT_EQ(is.rounds_missed(), was.rounds_missed()) << is.site();
    EXPECT_EQ(is.last_miss_reason(), was.last_miss_reason()) << is.site();
    EXPECT_EQ(is.contributed_steps(), was.contributed_steps()) << is.site();
    EXPECT_EQ(is.forfeited_steps(), was.forfeited_steps()) << is.site();
    EXPECT_EQ(is.forfeited_square_sum(), was.forfeited_square_sum()) << is.site();
    EXPECT_GT(is.forfeited_square_sum(), 0) << is.site() << ": what decay took";
  }
  EXPECT_GT(before.sites(3).rounds_missed(), 0);
  EXPECT_EQ(after.forfeited_square_sum(), before.forfeited_square_sum());
  EXPECT_EQ(after.contributions_refused(), before.contributions_refused());
  // What came after the last commit is lost.
  EXPECT_LE(after.digests_compared(), before.digests_compared());
  EXPECT_GE(after.digests_compared(), 8 * 4) << "of round 8 and those before it";
  EXPECT_LE(after.bytes_in(), before.bytes_in() * 11 / 10);
  EXPECT_GT(after.bytes_in(), before.bytes_in() * 8 / 10);
  EXPECT_GT(after.bytes_out(), before.bytes_out() * 8 / 10);
}

// Of the round before the last: it is on a slow link, and the last round opens without it.
TEST(RoleFaultsTest, AFrameThatIsLateInTheLastRoundIsNobodysFaultAndWhatItHeldGoesOutWithTheNext) {
  SimRunOptions o = Sites(3, 6);
  o.run.mutable_evaluation()->set_every_rounds(0);
  SimRun run(o);
  StartAll(&run);
  ASSERT_TRUE(RunUntil(&run, [&] { return StatusOf(&run).round() == 5; }));
  Fault slow;
  slow.kind = FaultKind::kDelayed;
  slow.target = FaultTarget::kUpload;
  slow.site = "c";
  slow.length = absl::Seconds(8);
  run.network().Inject(slow);
  ASSERT_TRUE(run.RunUntilFinished(absl::Hours(1)));
  EXPECT_EQ(run.network().struck(FaultKind::kDelayed), 1);
  const RunStatus status = StatusOf(&run);
  ASSERT_EQ(status.commits_size(), 6);
  EXPECT_EQ(status.commits(4).included(), 2);
  EXPECT_EQ(status.commits(5).included(), 3);
  EXPECT_EQ(status.contributions_refused(), 0);
  const SiteStatus& c = status.sites(2);
  EXPECT_EQ(c.rounds_included(), 5);
  EXPECT_EQ(c.rounds_missed(), 1);
  EXPECT_THAT(c.last_miss_reason(), StartsWith("round 5 closed without it: "));
  EXPECT_EQ(c.forfeited_steps(), 0);
  EXPECT_EQ(c.contributed_steps(), run.worker("c")->worker->settled_steps()) << "the dropped frame's with it";
  const CommitRecord& last = run.coordinator()->role->commits().back();
  EXPECT_EQ(last.included(2).steps(), 10);
  EXPECT_EQ(last.included(2).tokens(), 10 * 4 * 4) << "four sequences of four tokens a step";
}

}  // namespace
}  // namespace isthmus
