#include "daemon/rounds/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace isthmus {
namespace {

using testing::HasSubstr;
using testing::Optional;

Digest State(RoundId round) { return {7, static_cast<uint64_t>(round) + 1}; }
const Digest kFrame{9, 1}, kOther{9, 2};
const SiteLife kA{"a", 1}, kB{"b", 1};

// States 0 … `newest`, with the frames of the last one.
CommittedWindow Window(RoundId newest, const std::vector<CountedFrame>& frames = {}) {
  CommittedWindow window;
  window.Start(0, State(0));
  for (RoundId r = 1; r < newest; ++r) window.Committed(r, State(r), {});
  if (newest > 0) window.Committed(newest, State(newest), frames);
  return window;
}

RoundCore Open(RoundId round, bool is_last = false) {
  RoundOpening opening;
  opening.is_last = is_last;
  opening.key.round = round;
  opening.view = {kA, kB};
  return RoundCore({}, opening, absl::UnixEpoch());
}

ContributionClaim Claim(RoundId round, RoundId base) { return {kA, {round, 0}, State(base), kFrame}; }

absl::StatusCode CodeOf(const AdmissionAnswer& answer) {
  EXPECT_EQ(answer.admission == Admission::kRefuse, !answer.status.ok());
  EXPECT_FALSE(answer.reason.empty());
  return answer.status.code();
}

TEST(Admission, TakesAFrameOnTheNewestAnchorForTheOpenRound) {
  const RoundCore open = Open(6);
  const AdmissionAnswer answer = AdmitContribution(Claim(6, 5), &open, Window(5));
  EXPECT_EQ(answer.admission, Admission::kAdmit);
  EXPECT_FALSE(answer.is_late);
  EXPECT_EQ(answer.counted_in, 6);
}

TEST(Admission, CountsALateFrameInTheOpenRoundUpToFourCommitsBack) {
  const RoundCore open = Open(6);
  for (RoundId base : {1, 2, 3, 4}) {
    const AdmissionAnswer answer = AdmitContribution(Claim(base + 1, base), &open, Window(5));
    EXPECT_EQ(answer.admission, Admission::kAdmit) << base;
    EXPECT_TRUE(answer.is_late);
    EXPECT_EQ(answer.counted_in, 6);
  }
  const AdmissionAnswer old = AdmitContribution(Claim(1, 0), &open, Window(5));
  EXPECT_EQ(CodeOf(old), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(old.reason, HasSubstr("its base is 5 rounds back, at most 4 count"));
}

TEST(Admission, DoesNotAgeABaseByAbortedRounds) {
  CommittedWindow window;
  window.Start(0, State(0));
  window.Committed(1, State(1), {});
  const RoundCore open = Open(30);  // 2 to 29 aborted
  EXPECT_EQ(AdmitContribution(Claim(2, 1), &open, window).admission, Admission::kAdmit);
  EXPECT_EQ(AdmitContribution(Claim(1, 0), &open, window).admission, Admission::kAdmit);
}

TEST(Admission, KnowsAFrameThatACommitIncludedEvenBetweenRounds) {
  const CommittedWindow window = Window(5, {{"a", kFrame}});
  const AdmissionAnswer answer = AdmitContribution(Claim(4, 3), nullptr, window);
  EXPECT_EQ(answer.admission, Admission::kDuplicate);
  EXPECT_TRUE(answer.status.ok());
  EXPECT_EQ(answer.counted_in, 5);
}

TEST(Admission, KnowsTheFrameOfAFormerLife) {
  const CommittedWindow window = Window(5, {{"a", kFrame}});
  ContributionClaim claim = Claim(5, 4);
  claim.life.incarnation = 8;
  EXPECT_EQ(AdmitContribution(claim, nullptr, window).admission, Admission::kDuplicate);
}

TEST(Admission, TakesTheSameBytesAgainOnceTheirBaseIsNewer) {
  // Sites that learned nothing send the same all-zero frame round after round.
  const CommittedWindow window = Window(5, {{"a", kFrame}});
  const RoundCore open = Open(6);
  EXPECT_EQ(AdmitContribution(Claim(6, 5), &open, window).admission, Admission::kAdmit);
}

TEST(Admission, TakesTheSameBytesFromTwoSites) {
  RoundCore open = Open(6);
  open.ContributionArrived(kB, kFrame, absl::UnixEpoch());
  EXPECT_EQ(AdmitContribution(Claim(6, 5), &open, Window(5, {{"b", kFrame}})).admission, Admission::kAdmit);
}

TEST(Admission, CountsAFrameOnceInTheOpenRoundAndNoSecondOneOfTheSite) {
  RoundCore open = Open(6);
  open.ContributionArrived(kA, kFrame, absl::UnixEpoch());
  const AdmissionAnswer again = AdmitContribution(Claim(6, 5), &open, Window(5));
  EXPECT_EQ(again.admission, Admission::kDuplicate);
  EXPECT_EQ(again.counted_in, 6);
  ContributionClaim second = Claim(6, 5);
  second.frame = kOther;
  EXPECT_EQ(CodeOf(AdmitContribution(second, &open, Window(5))), absl::StatusCode::kFailedPrecondition);
}

TEST(Admission, AsksToSendAgainWhileNoRoundIsOpen) {
  EXPECT_EQ(CodeOf(AdmitContribution(Claim(6, 5), nullptr, Window(5))), absl::StatusCode::kUnavailable);
}

TEST(Admission, RefusesWhoIsNotInTheView) {
  const RoundCore open = Open(6);
  ContributionClaim claim = Claim(6, 5);
  claim.life = {"a", 2};
  const AdmissionAnswer answer = AdmitContribution(claim, &open, Window(5));
  EXPECT_EQ(CodeOf(answer), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(answer.reason, HasSubstr("contribution of a/2 made for round 6"));
}

TEST(Admission, TellsABaseThatWasNeverCommittedFromOneThatIsForgotten) {
  const RoundCore open = Open(101);
  CommittedWindow window = Window(100);
  EXPECT_EQ(window.oldest_round(), 37);
  EXPECT_EQ(window.newest_round(), 100);
  EXPECT_EQ(CodeOf(AdmitContribution(Claim(9, 8), &open, window)), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(CodeOf(AdmitContribution(Claim(50, 49), &open, window)), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(CodeOf(AdmitContribution(Claim(101, 555), &open, window)), absl::StatusCode::kDataLoss);
}

TEST(Admission, DropsALateFrameInTheLastRoundWithoutRefusingIt) {
  const RoundCore open = Open(6, /*is_last=*/true);
  const CommittedWindow window = Window(5);
  const AdmissionAnswer late = AdmitContribution(Claim(5, 4), &open, window);
  EXPECT_EQ(late.admission, Admission::kDrop);
  EXPECT_TRUE(late.is_late);
  EXPECT_EQ(CodeOf(late), absl::StatusCode::kOk);
  EXPECT_EQ(
      late.reason,
      "contribution of a/1 made for round 5 is late: the last round, 6, takes only its own frames; what it "
      "held goes out with the next");
  EXPECT_EQ(AdmitContribution(Claim(6, 5), &open, window).admission, Admission::kAdmit);
  EXPECT_EQ(AdmitContribution(Claim(6, 4), &open, window).admission, Admission::kAdmit) << "an older base";
  EXPECT_EQ(CodeOf(AdmitContribution(Claim(5, 555), &open, window)), absl::StatusCode::kDataLoss);
}

TEST(Admission, RefusesNonsense) {
  const RoundCore open = Open(6);
  const CommittedWindow window = Window(5);
  EXPECT_EQ(CodeOf(AdmitContribution(Claim(7, 5), &open, window)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(AdmitContribution(Claim(0, 5), &open, window)), absl::StatusCode::kInvalidArgument);
  ContributionClaim claim = Claim(6, 5);
  claim.key.fragment = 1;
  EXPECT_EQ(CodeOf(AdmitContribution(claim, &open, window)), absl::StatusCode::kInvalidArgument);
  claim = Claim(6, 5);
  claim.frame = {};
  EXPECT_EQ(CodeOf(AdmitContribution(claim, &open, window)), absl::StatusCode::kInvalidArgument);
  claim = Claim(6, 5);
  claim.base = {};
  EXPECT_EQ(CodeOf(AdmitContribution(claim, &open, window)), absl::StatusCode::kInvalidArgument);
}

TEST(CommittedWindow, RemembersFramesAsLongAsTheirBaseCounts) {
  CommittedWindow window = Window(0);
  window.Committed(1, State(1), std::vector<CountedFrame>{{"a", kFrame}});
  for (RoundId r = 2; r <= 4; ++r) {
    window.Committed(r, State(r), {});
    EXPECT_THAT(window.RoundOfFrame({"a", kFrame}, State(0)), Optional(1)) << r;
    EXPECT_EQ(*window.AgeOf(State(0)), r);
  }
  window.Committed(5, State(5), {});
  EXPECT_FALSE(window.RoundOfFrame({"a", kFrame}, State(0)).has_value());
  EXPECT_EQ(window.AgeOf(State(0)), 5) << "too old to count, still known as committed";
}

}  // namespace
}  // namespace isthmus
