#include "daemon/membership/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"

namespace isthmus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const SiteLife kA{"a", 1}, kB{"b", 1};

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

std::vector<MemberChange> Changes(const MemberEffects& effects) {
  std::vector<MemberChange> out;
  for (const MemberEffect& e : effects) out.push_back(e.change);
  return out;
}

SiteState StateOf(const Membership& m, const SiteName& name) {
  for (const MemberStatus& s : m.Snapshot(At(0))) {
    if (s.life.name == name) return s.state;
  }
  ADD_FAILURE() << "no site " << name;
  return SiteState::kLeft;
}

// a and b in the view from second 0.
Membership TwoActive(const MembershipOptions& options = {}) {
  Membership m(options);
  for (const SiteLife& life : {kA, kB}) {
    EXPECT_TRUE(m.JoinRequested(life.name, life.incarnation, At(0)).status.ok());
    m.CaughtUp(life, At(0));
  }
  m.FreezeView(At(0));
  return m;
}

TEST(Membership, AdmitsANewSiteAsJoiningAndNotIntoTheView) {
  Membership m;
  const JoinAnswer answer = m.JoinRequested("a", 1, At(0));
  EXPECT_TRUE(answer.status.ok());
  EXPECT_THAT(Changes(answer.effects), ElementsAre(MemberChange::kAdmitted));
  EXPECT_EQ(StateOf(m, "a"), SiteState::kJoining);
  EXPECT_THAT(m.FreezeView(At(1)), IsEmpty());
  EXPECT_EQ(m.view().id, 0);
  EXPECT_THAT(m.view().members, IsEmpty());
}

TEST(Membership, JoinsACaughtUpSiteOnlyAtTheBoundaryAndListsMembersByName) {
  Membership m;
  m.JoinRequested("b", 4, At(0));
  m.JoinRequested("a", 9, At(0));
  EXPECT_THAT(Changes(m.CaughtUp({"b", 4}, At(1))), ElementsAre(MemberChange::kReady));
  m.CaughtUp({"a", 9}, At(1));
  EXPECT_THAT(m.view().members, IsEmpty());
  EXPECT_THAT(Changes(m.FreezeView(At(2))), ElementsAre(MemberChange::kJoined, MemberChange::kJoined));
  EXPECT_THAT(m.view().members, ElementsAre(SiteLife{"a", 9}, SiteLife{"b", 4}));
  EXPECT_EQ(m.view().id, 1);
  EXPECT_TRUE(m.view().Contains({"a", 9}));
  EXPECT_FALSE(m.view().Contains({"a", 8}));
}

TEST(Membership, KeepsTheViewNumberWhileTheSetStaysTheSame) {
  Membership m = TwoActive();
  m.FreezeView(At(1));
  m.FreezeView(At(2));
  EXPECT_EQ(m.view().id, 1);
}

TEST(Membership, SuspectsAtThreeSecondsOfSilenceAndBuriesAtSix) {
  Membership m = TwoActive();
  EXPECT_EQ(m.NextDeadline(), At(3));
  EXPECT_THAT(m.Tick(At(2.999)), IsEmpty());
  m.HeartbeatReceived(kA, At(2.999));
  const MemberEffects effects = m.Tick(At(3));
  EXPECT_THAT(Changes(effects), ElementsAre(MemberChange::kSuspected));
  EXPECT_EQ(effects[0].life, kB);
  EXPECT_EQ(effects[0].reason, "b/1 is suspect: silent for 3.0 s (limit 3.0 s)");
  EXPECT_EQ(m.NextDeadline(), At(5.999));
  m.HeartbeatReceived(kA, At(5));
  EXPECT_THAT(m.Tick(At(5.999)), IsEmpty());
  EXPECT_THAT(Changes(m.Tick(At(6))), ElementsAre(MemberChange::kDied));
  EXPECT_EQ(StateOf(m, "b"), SiteState::kDead);
}

TEST(Membership, ReportsSuspicionAndDeathWhenTheTickComesLate) {
  Membership m = TwoActive();
  m.HeartbeatReceived(kA, At(100));
  EXPECT_THAT(Changes(m.Tick(At(100))), ElementsAre(MemberChange::kSuspected, MemberChange::kDied));
}

TEST(Membership, DoesNotCountTheTimeNobodyListenedAsSilence) {
  Membership m = TwoActive();
  m.HeartbeatReceived(kA, At(1));
  m.HeartbeatReceived(kB, At(2));
  // From second 2 to second 100 nobody listened: a was silent for one second, b for none.
  m.NobodyListened(absl::Seconds(98), At(100));
  EXPECT_THAT(m.ConnectionLost(kB, At(100)), IsEmpty());
  EXPECT_THAT(m.Tick(At(100)), IsEmpty());
  EXPECT_EQ(m.NextDeadline(), At(101.5));  // b, disconnected: half the limit
  EXPECT_THAT(Changes(m.Tick(At(102))), ElementsAre(MemberChange::kSuspected, MemberChange::kSuspected));
  EXPECT_THAT(Changes(m.Tick(At(105))), ElementsAre(MemberChange::kDied, MemberChange::kDied));
}

TEST(Membership, TakesNoSampleOfAGapInWhichNobodyListened) {
  Membership m = TwoActive();
  for (int second = 1; second <= 5; ++second) m.HeartbeatReceived(kA, At(second));
  m.NobodyListened(absl::Seconds(60), At(65));
  m.HeartbeatReceived(kA, At(65.5));
  EXPECT_EQ(m.Snapshot(At(65.5))[0].suspected_after, absl::Seconds(3));
}

TEST(Membership, HearsNobodyInTheFutureHoweverLongNobodyListened) {
  Membership m = TwoActive();
  m.HeartbeatReceived(kA, At(9));
  m.NobodyListened(absl::Seconds(60), At(10));
  EXPECT_EQ(m.Snapshot(At(10))[0].silence, absl::ZeroDuration());
  EXPECT_EQ(m.NextDeadline(), At(13));
}

TEST(Membership, HalvesBothLimitsWhenTheConnectionBroke) {
  Membership m = TwoActive();
  m.HeartbeatReceived(kA, At(10));
  m.HeartbeatReceived(kB, At(10));
  EXPECT_THAT(m.ConnectionLost(kB, At(10)), IsEmpty());
  EXPECT_EQ(m.NextDeadline(), At(11.5));
  EXPECT_THAT(Changes(m.Tick(At(11.5))), ElementsAre(MemberChange::kSuspected));
  EXPECT_THAT(Changes(m.Tick(At(13))), ElementsAre(MemberChange::kSuspected, MemberChange::kDied));
}

TEST(Membership, JudgesASilentSiteTheMomentItsConnectionBreaks) {
  Membership m = TwoActive();
  EXPECT_THAT(Changes(m.ConnectionLost(kB, At(2))), ElementsAre(MemberChange::kSuspected));
}

TEST(Membership, LetsASuspectRefuteByAnyMessageAndBeWhatItWas) {
  Membership m = TwoActive();
  m.Tick(At(4));
  EXPECT_EQ(StateOf(m, "b"), SiteState::kSuspect);
  const MemberEffects effects = m.Heard(kB, At(5));
  EXPECT_THAT(Changes(effects), ElementsAre(MemberChange::kRefuted));
  EXPECT_EQ(effects[0].reason, "b/1 refuted: it spoke after 5.0 s of silence");
  EXPECT_EQ(StateOf(m, "b"), SiteState::kActive);
}

TEST(Membership, LearnsTheIntervalAsMeanPlusFourDeviationsOfTheLastSixteenGaps) {
  Membership m = TwoActive();
  double t = 0;
  m.HeartbeatReceived(kA, At(t));
  for (int i = 0; i < 40; ++i) m.HeartbeatReceived(kA, At(t += 50));  // forgotten below
  for (int i = 0; i < 8; ++i) {
    m.HeartbeatReceived(kA, At(t += 2));
    m.HeartbeatReceived(kA, At(t += 4));
  }
  // Mean 3 s, deviation 1 s.
  EXPECT_EQ(m.Snapshot(At(t))[0].suspected_after, absl::Seconds(7));
}

TEST(Membership, TakesNoSampleAcrossABrokenConnection) {
  Membership m = TwoActive();
  m.HeartbeatReceived(kA, At(1));
  m.ConnectionLost(kA, At(1));
  m.ConnectionRestored(kA, At(2));
  m.HeartbeatReceived(kA, At(900));
  EXPECT_EQ(m.Snapshot(At(900))[0].suspected_after, absl::Seconds(3));
}

TEST(Membership, IsNeverSuspiciousBeforeThreeIntervalsPassed) {
  MembershipOptions options;
  options.heartbeat_interval = absl::Seconds(5);
  EXPECT_EQ(TwoActive(options).NextDeadline(), At(15));
}

TEST(Membership, RefusesANameThatALivingConnectedSiteHolds) {
  Membership m = TwoActive();
  const JoinAnswer answer = m.JoinRequested("a", 2, At(1));
  EXPECT_EQ(answer.status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(answer.status.message()), HasSubstr("held by a/1, alive and last heard 1.0 s ago"));
  EXPECT_TRUE(m.CheckLife(kA).ok());
}

TEST(Membership, TellsWhenTheNameOfADisconnectedSiteWillBeFree) {
  Membership m = TwoActive();
  m.ConnectionLost(kA, At(1));
  const JoinAnswer early = m.JoinRequested("a", 2, At(1));
  EXPECT_EQ(early.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(early.retry_at, At(1.5));
  // No tick happened in between: asking finds the suspicion itself.
  const JoinAnswer answer = m.JoinRequested("a", 2, early.retry_at);
  EXPECT_TRUE(answer.status.ok());
  EXPECT_THAT(Changes(answer.effects),
              ElementsAre(MemberChange::kSuspected, MemberChange::kDied, MemberChange::kAdmitted));
  EXPECT_EQ(m.Holder("a"), (SiteLife{"a", 2}));
}

TEST(Membership, MakesANewcomerWaitForTheDeathOfAConnectedSuspect) {
  Membership m = TwoActive();
  m.Tick(At(4));
  const JoinAnswer early = m.JoinRequested("a", 2, At(4));
  EXPECT_EQ(early.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(early.retry_at, At(6));
  EXPECT_TRUE(m.JoinRequested("a", 2, At(6)).status.ok());
}

TEST(Membership, ReplacesADeadOrDepartedHolderOfTheName) {
  Membership m = TwoActive();
  m.Departed(kA, At(1));
  EXPECT_TRUE(m.JoinRequested("a", 2, At(1)).status.ok());
  m.Evict(kB, "test", At(1));
  EXPECT_TRUE(m.JoinRequested("b", 2, At(1)).status.ok());
}

TEST(Membership, RefusesAnIncarnationThatIsNotNewAndAnEmptyName) {
  Membership m = TwoActive();
  m.Departed(kA, At(1));
  EXPECT_EQ(m.JoinRequested("a", 1, At(1)).status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(m.JoinRequested("c", 0, At(1)).status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(m.JoinRequested("", 1, At(1)).status.code(), absl::StatusCode::kInvalidArgument);
}

TEST(Membership, RefusesMoreSitesThanTheSumsHaveRoomFor) {
  MembershipOptions options;
  options.max_sites = 2;
  Membership m = TwoActive(options);
  EXPECT_EQ(m.JoinRequested("c", 1, At(1)).status.code(), absl::StatusCode::kResourceExhausted);
  m.Departed(kA, At(1));
  EXPECT_TRUE(m.JoinRequested("c", 1, At(1)).status.ok());
}

TEST(Membership, FencesOlderUnknownAndDeadLivesAndSaysWhich) {
  Membership m = TwoActive();
  m.Departed(kA, At(1));
  m.JoinRequested("a", 2, At(1));
  const MemberEffects older = m.HeartbeatReceived(kA, At(2));
  EXPECT_THAT(Changes(older), ElementsAre(MemberChange::kFenced));
  EXPECT_EQ(older[0].reason, "a/1 is an older life: a/2 holds the name");
  EXPECT_THAT(Changes(m.Heard({"a", 3}, At(2))), ElementsAre(MemberChange::kFenced));
  EXPECT_THAT(Changes(m.CaughtUp({"z", 1}, At(2))), ElementsAre(MemberChange::kFenced));
  EXPECT_EQ(m.CheckLife({"z", 1}).code(), absl::StatusCode::kFailedPrecondition);
  m.Evict(kB, "of no use", At(2));
  EXPECT_THAT(Changes(m.HeartbeatReceived(kB, At(3))), ElementsAre(MemberChange::kFenced));
  EXPECT_THAT(std::string(m.CheckLife(kB).message()), HasSubstr("b/1 was evicted: of no use"));
}

TEST(Membership, IgnoresTheBrokenConnectionOfALifeThatIsOver) {
  Membership m = TwoActive();
  m.Departed(kA, At(1));
  m.JoinRequested("a", 2, At(1));
  EXPECT_THAT(m.ConnectionLost(kA, At(2)), IsEmpty());
  EXPECT_TRUE(m.Snapshot(At(2))[0].is_connected);
}

TEST(Membership, DrainsAnActiveSiteUntilTheBoundary) {
  Membership m = TwoActive();
  EXPECT_THAT(Changes(m.LeaveRequested(kA, At(1))), ElementsAre(MemberChange::kDraining));
  EXPECT_THAT(m.LeaveRequested(kA, At(1)), IsEmpty());
  EXPECT_TRUE(m.view().Contains(kA));
  EXPECT_THAT(Changes(m.FreezeView(At(2))), ElementsAre(MemberChange::kLeft));
  EXPECT_THAT(m.view().members, ElementsAre(kB));
  EXPECT_EQ(m.view().id, 2);
}

TEST(Membership, LetsASiteThatTakesNoPartLeaveAtOnce) {
  Membership m;
  m.JoinRequested("a", 1, At(0));
  EXPECT_THAT(Changes(m.LeaveRequested(kA, At(1))), ElementsAre(MemberChange::kLeft));
  EXPECT_EQ(m.living(), 0);
}

TEST(Membership, DoesNotJoinAReadySiteWhileItIsSuspect) {
  Membership m;
  m.JoinRequested("a", 1, At(0));
  m.CaughtUp(kA, At(0));
  m.Tick(At(4));
  m.FreezeView(At(4));
  EXPECT_THAT(m.view().members, IsEmpty());
  m.Heard(kA, At(5));
  EXPECT_EQ(StateOf(m, "a"), SiteState::kReady);
  m.FreezeView(At(5));
  EXPECT_THAT(m.view().members, ElementsAre(kA));
}

TEST(Membership, KeepsASuspectInTheViewUntilItDies) {
  Membership m = TwoActive();
  m.HeartbeatReceived(kA, At(4));
  m.Tick(At(4));
  m.FreezeView(At(4));
  EXPECT_THAT(m.view().members, ElementsAre(kA, kB));
  m.HeartbeatReceived(kA, At(6));
  m.Tick(At(6));
  m.FreezeView(At(6));
  EXPECT_THAT(m.view().members, ElementsAre(kA));
}

TEST(Membership, RestoresItsViewAndGivesMembersTimeToCallAgain) {
  Membership m;
  View view;
  view.id = 7;
  view.members = {kB, kA};
  m.Restore(view, absl::Seconds(10), At(100));
  EXPECT_EQ(m.view().id, 7);
  EXPECT_THAT(m.view().members, ElementsAre(kA, kB));
  EXPECT_EQ(m.NextDeadline(), At(111.5));
  EXPECT_EQ(m.Snapshot(At(101))[0].silence, absl::ZeroDuration());
  EXPECT_THAT(m.ConnectionRestored(kA, At(102)), IsEmpty());
  EXPECT_EQ(m.NextDeadline(), At(105));
  m.FreezeView(At(103));
  EXPECT_EQ(m.view().id, 7);
}

TEST(Membership, ForgetsTheGoneAfterSixtyFourBoundaries) {
  Membership m = TwoActive();
  m.Departed(kA, At(1));
  for (int i = 0; i < 64; ++i) m.FreezeView(At(1));
  EXPECT_EQ(m.Snapshot(At(1)).size(), 2);
  m.FreezeView(At(1));
  EXPECT_EQ(m.Snapshot(At(1)).size(), 1);
  EXPECT_EQ(m.Holder("a").incarnation, 0);
}

TEST(Membership, ShowsStateSilenceAndReasonPerSite) {
  Membership m = TwoActive();
  m.HeartbeatReceived(kA, At(2));
  const std::vector<MemberStatus> status = m.Snapshot(At(2.5));
  ASSERT_EQ(status.size(), 2);
  EXPECT_EQ(status[0].life, kA);
  EXPECT_EQ(status[0].silence, absl::Seconds(0.5));
  EXPECT_EQ(status[0].in_state, absl::Seconds(2.5));
  EXPECT_EQ(status[1].silence, absl::Seconds(2.5));
  EXPECT_EQ(status[1].reason, "b/1 joined the view");
  EXPECT_TRUE(status[1].is_connected);
}

}  // namespace
}  // namespace isthmus
