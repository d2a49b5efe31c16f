#include "daemon/rounds/round.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace isthmus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }
SiteLife Site(char name) { return {std::string(1, name), 1}; }
Digest Frame(char name) { return {1, static_cast<uint64_t>(name)}; }

std::vector<SiteLife> Sites(absl::string_view names) {
  std::vector<SiteLife> out;
  for (char name : names) out.push_back(Site(name));
  return out;
}

// A round of sixty seconds with a grace of five, on these sites.
RoundCore Open(absl::string_view names, RoundOptions options = {}, RoundId round = 4, bool is_last = false) {
  options.longest_round = absl::Seconds(60);
  RoundOpening opening;
  opening.key.round = round;
  opening.view = Sites(names);
  opening.grace = absl::Seconds(5);
  opening.is_last = is_last;
  return RoundCore(options, opening, At(0));
}

RoundDecision Arrive(RoundCore* round, char site, double seconds) {
  return round->ContributionArrived(Site(site), Frame(site), At(seconds));
}

TEST(Round, TakesQuorumAndMinimumFromTheSizeOfTheView) {
  const RoundOptions options;
  const int quorum[] = {1, 2, 2, 3, 4, 4, 5, 6, 6}, minimum[] = {1, 1, 2, 2, 3, 3, 4, 4, 5};
  for (int r = 1; r <= 9; ++r) {
    EXPECT_EQ(QuorumOf(options, r), quorum[r - 1]) << r;
    EXPECT_EQ(MinimumOf(options, r), minimum[r - 1]) << r;
  }
}

TEST(Round, LetsTheRunFileSetQuorumAndMinimumButNeverAboveTheView) {
  RoundOptions options;
  options.quorum = 5;
  options.minimum = 4;
  EXPECT_EQ(QuorumOf(options, 9), 5);
  EXPECT_EQ(QuorumOf(options, 3), 3);
  EXPECT_EQ(MinimumOf(options, 9), 4);
  EXPECT_EQ(MinimumOf(options, 2), 2);
}

TEST(Round, OpensOnlyWithASetMinimumOfSites) {
  RoundOptions options;
  EXPECT_EQ(ReasonNotToOpen(options, 1), "");
  EXPECT_EQ(ReasonNotToOpen(options, 0), "waiting for sites: 0 in, 1 needed");
  options.minimum = 2;
  EXPECT_EQ(ReasonNotToOpen(options, 1), "waiting for sites: 1 in, 2 needed");
  EXPECT_EQ(ReasonNotToOpen(options, 2), "");
}

TEST(Round, ClosesWhenAllExpectedAreIn) {
  RoundCore round = Open("abc");
  EXPECT_EQ(Arrive(&round, 'c', 10).verdict, RoundVerdict::kWait);
  EXPECT_EQ(Arrive(&round, 'a', 11).verdict, RoundVerdict::kWait);
  const RoundDecision decision = Arrive(&round, 'b', 12);
  EXPECT_EQ(decision.verdict, RoundVerdict::kClose);
  EXPECT_EQ(decision.rule, CloseRule::kAllArrived);
  EXPECT_EQ(decision.reason, "round 4 closed: all 3 sites contributed");
  EXPECT_THAT(decision.included, ElementsAre(Site('a'), Site('b'), Site('c')));
  EXPECT_EQ(round.quorum_at(), At(11));
  EXPECT_EQ(round.last_arrival_at(), At(12));
}

TEST(Round, ClosesOneGraceAfterTheQuorumWasReached) {
  RoundCore round = Open("abcd");
  Arrive(&round, 'a', 10);
  Arrive(&round, 'b', 11);
  EXPECT_EQ(round.NextDeadline(), At(60));
  Arrive(&round, 'd', 12);
  EXPECT_EQ(round.NextDeadline(), At(17));
  EXPECT_EQ(round.Tick(At(16.999)).verdict, RoundVerdict::kWait);
  const RoundDecision decision = round.Tick(At(17));
  EXPECT_EQ(decision.verdict, RoundVerdict::kClose);
  EXPECT_EQ(decision.rule, CloseRule::kQuorumAndGrace);
  EXPECT_EQ(decision.reason,
            "round 4 closed: quorum of 3 and a grace of 5.0 s passed with 3 of 4 sites, without c/1");
  EXPECT_THAT(decision.included, ElementsAre(Site('a'), Site('b'), Site('d')));
}

TEST(Round, HasNoGraceInItsFirstThreeRoundsInTheLastOneAndBeforeItIsLearned) {
  for (RoundId number : {1, 2, 3}) {
    RoundCore round = Open("abc", {}, number);
    Arrive(&round, 'a', 1);
    Arrive(&round, 'b', 1);
    EXPECT_EQ(round.NextDeadline(), At(60)) << number;
    EXPECT_EQ(round.Tick(At(59)).verdict, RoundVerdict::kWait);
  }
  RoundCore last = Open("abc", {}, 40, true);
  Arrive(&last, 'a', 1);
  Arrive(&last, 'b', 1);
  EXPECT_EQ(last.NextDeadline(), At(60));
  RoundOpening opening;
  opening.key.round = 9;
  opening.view = Sites("abc");
  RoundCore unlearned({}, opening, At(0));
  Arrive(&unlearned, 'a', 1);
  Arrive(&unlearned, 'b', 1);
  EXPECT_EQ(unlearned.NextDeadline(), At(600));
  EXPECT_THAT(unlearned.WaitingFor(At(1)), HasSubstr("no grace learned yet"));
}

TEST(Round, ClosesAtTheDeadlineWithTheMinimum) {
  RoundCore round = Open("abcd");
  Arrive(&round, 'a', 10);
  Arrive(&round, 'b', 20);
  EXPECT_EQ(round.Tick(At(59.999)).verdict, RoundVerdict::kWait);
  const RoundDecision decision = round.Tick(At(60));
  EXPECT_EQ(decision.verdict, RoundVerdict::kClose);
  EXPECT_EQ(decision.rule, CloseRule::kDeadline);
  EXPECT_THAT(decision.included, ElementsAre(Site('a'), Site('b')));
}

TEST(Round, AbortsAtTheDeadlineBelowTheMinimum) {
  RoundCore round = Open("abcd");
  Arrive(&round, 'a', 10);
  const RoundDecision decision = round.Tick(At(60));
  EXPECT_EQ(decision.verdict, RoundVerdict::kAbort);
  EXPECT_EQ(decision.rule, CloseRule::kNone);
  EXPECT_THAT(decision.included, IsEmpty());
  EXPECT_EQ(decision.reason,
            "round 4 aborted: deadline of 60.0 s passed with 1 of 4 sites, without b/1, c/1, d/1; the "
            "minimum is 2");
}

TEST(Round, ClosesAtOnceWhenTheOnlyMissingSiteDies) {
  RoundCore round = Open("abc");
  Arrive(&round, 'a', 10);
  Arrive(&round, 'b', 11);
  const RoundDecision decision = round.SiteGone(Site('c'), "died", At(12));
  EXPECT_EQ(decision.verdict, RoundVerdict::kClose);
  EXPECT_EQ(decision.rule, CloseRule::kAllArrived);
  EXPECT_EQ(decision.reason, "round 4 closed: all that are left contributed, 2 of 3 sites; c/1 died");
}

TEST(Round, KeepsTheContributionOfASiteThatDiedAfterwards) {
  RoundCore round = Open("abc");
  Arrive(&round, 'a', 10);
  EXPECT_EQ(round.SiteGone(Site('a'), "died", At(11)).verdict, RoundVerdict::kWait);
  Arrive(&round, 'b', 12);
  EXPECT_THAT(Arrive(&round, 'c', 13).included, ElementsAre(Site('a'), Site('b'), Site('c')));
}

TEST(Round, CountsTheQuorumOutOfTheFrozenViewWhoeverDies) {
  RoundCore round = Open("abcdef");
  for (char site : {'e', 'f'}) round.SiteGone(Site(site), "died", At(1));
  for (char site : {'a', 'b', 'c'}) Arrive(&round, site, 2);
  EXPECT_EQ(round.quorum(), 4);
  EXPECT_EQ(round.NextDeadline(), At(60));
}

TEST(Round, ClosesWithWhatThereIsWhenOnlyOneIsLeft) {
  RoundCore round = Open("abc");
  round.SiteGone(Site('b'), "died", At(1));
  round.SiteGone(Site('c'), "left", At(2));
  const RoundDecision decision = Arrive(&round, 'a', 3);
  EXPECT_EQ(decision.verdict, RoundVerdict::kClose);
  EXPECT_EQ(decision.reason,
            "round 4 closed: all that are left contributed, 1 of 3 sites; b/1 died, c/1 left");
}

TEST(Round, AbortsWhenASetMinimumCanNoLongerBeMet) {
  RoundOptions options;
  options.minimum = 2;
  RoundCore round = Open("abc", options);
  round.SiteGone(Site('b'), "died", At(1));
  round.SiteGone(Site('c'), "died", At(2));
  EXPECT_EQ(Arrive(&round, 'a', 3).verdict, RoundVerdict::kAbort);
}

TEST(Round, AbortsAtOnceWhenEverybodyIsGoneAndNothingArrived) {
  RoundCore round = Open("ab");
  round.SiteGone(Site('a'), "died", At(1));
  EXPECT_EQ(round.SiteGone(Site('b'), "died", At(1)).verdict, RoundVerdict::kAbort);
}

TEST(Round, CountsASiteOnceAndOthersNotAtAll) {
  RoundCore round = Open("abc");
  Arrive(&round, 'a', 1);
  round.ContributionArrived(Site('a'), Frame('z'), At(2));
  round.ContributionArrived(Site('q'), Frame('q'), At(3));
  round.ContributionArrived({"b", 2}, Frame('b'), At(3));
  round.SiteGone({"b", 2}, "died", At(3));
  EXPECT_THAT(round.Arrived(), ElementsAre(Site('a')));
  EXPECT_THAT(round.Missing(), ElementsAre(Site('b'), Site('c')));
  EXPECT_EQ(*round.FrameOf(Site('a')), Frame('a'));
  EXPECT_FALSE(round.FrameOf(Site('b')).has_value());
  EXPECT_TRUE(round.HasFrame("a", Frame('a')));
  EXPECT_FALSE(round.HasFrame("b", Frame('a')));
  EXPECT_EQ(round.last_arrival_at(), At(1));
}

TEST(Round, DecidesOnceAndIsDeafAfterwards) {
  RoundCore round = Open("ab");
  Arrive(&round, 'a', 1);
  EXPECT_EQ(round.Tick(At(60)).verdict, RoundVerdict::kClose);
  EXPECT_TRUE(round.is_decided());
  const RoundDecision again = Arrive(&round, 'b', 61);
  EXPECT_EQ(again.verdict, RoundVerdict::kWait);
  EXPECT_EQ(again.reason, "round 4 is already closed");
  EXPECT_EQ(round.Tick(At(99)).verdict, RoundVerdict::kWait);
  EXPECT_THAT(round.Arrived(), ElementsAre(Site('a')));
  EXPECT_EQ(round.NextDeadline(), absl::InfiniteFuture());
}

TEST(Round, SaysWhomItWaitsForAndHowLong) {
  RoundCore round = Open("abcd");
  Arrive(&round, 'a', 10);
  EXPECT_EQ(round.WaitingFor(At(10)),
            "round 4 waits for b/1, c/1, d/1: 1 of 4 sites in, quorum 3, then a grace of 5.0 s, deadline in "
            "50.0 s");
  Arrive(&round, 'b', 10);
  Arrive(&round, 'c', 10);
  EXPECT_EQ(round.WaitingFor(At(12)),
            "round 4 waits for d/1: 3 of 4 sites in, quorum 3, grace left 3.0 s, deadline in 48.0 s");
}

}  // namespace
}  // namespace isthmus
