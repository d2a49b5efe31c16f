#include "daemon/coordinator/site_book.h"

#include <gtest/gtest.h>

#include <limits>

namespace isthmus {
namespace {

absl::Time At(int64_t seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

SiteProgress Steps(int64_t steps) {
  SiteProgress p;
  p.set_inner_steps(steps);
  return p;
}

TEST(SiteBookTest, AKilledProcessForfeitsWhatItDidSinceItsLastCommittedEncode) {
  SiteBook book;
  book.NewProcess("a", 1, 0);
  book.ProgressReported("a", Steps(50), At(10));
  book.Included({"a", 1}, 30, 30);
  EXPECT_EQ(book.NewProcess("a", 2, 0), 20);
  EXPECT_EQ(book.at("a").forfeited_steps, 20);
  EXPECT_EQ(book.at("a").contributed_steps, 30);
  EXPECT_EQ(book.NewProcess("a", 3, 0), 0);
}

TEST(SiteBookTest, StepsUntilTheConnectionBrokeAreEstimatedFromTheSpeedButNotForLong) {
  SiteBook book;
  book.NewProcess("a", 1, 0);
  SiteProgress p = Steps(50);
  p.set_steps_per_second(10);
  book.ProgressReported("a", p, At(10));
  book.at("a").lost_at = At(11);
  EXPECT_EQ(book.ProcessGone("a"), 60);
  EXPECT_EQ(book.ProcessGone("a"), 0);
  book.NewProcess("a", 2, 0);
  book.ProgressReported("a", p, At(100));
  book.at("a").lost_at = At(200);
  EXPECT_EQ(book.ProcessGone("a"), 80);
}

TEST(SiteBookTest, AFrameThatWaitsForItsOutcomeSpeaksForItsSteps) {
  SiteBook book;
  book.NewProcess("a", 1, 0);
  book.ProgressReported("a", Steps(50), At(10));
  EXPECT_EQ(book.NewProcess("a", 2, 45), 5);
  book.FrameLost("a", 45);
  EXPECT_EQ(book.at("a").forfeited_steps, 50);
}

TEST(SiteBookTest, AFormerProcesssFrameDoesNotSpeakForThePresentOne) {
  SiteBook book;
  book.NewProcess("a", 1, 0);
  book.NewProcess("a", 2, 0);
  book.Included({"a", 1}, 500, 500);
  book.ProgressReported("a", Steps(40), At(10));
  EXPECT_EQ(book.ProcessGone("a"), 40);
  EXPECT_EQ(book.at("a").contributed_steps, 500);
}

TEST(SiteBookTest, WhatASiteReportsItselfIsNotBookedAgain) {
  SiteBook book;
  book.NewProcess("a", 1, 0);
  Forfeited f;
  f.set_steps(12);
  f.set_square_sum(0.5);
  f.set_inner_steps(60);
  book.ProgressReported("a", Steps(55), At(10));
  book.Forfeited("a", f);
  book.ProgressReported("a", Steps(63), At(11));
  EXPECT_EQ(book.ProcessGone("a"), 3);
  EXPECT_EQ(book.at("a").forfeited_steps, 15);
  EXPECT_EQ(book.at("a").forfeited_square_sum, 0.5);
}

TEST(SiteBookTest, MissesKeepTheirReasonAndRoundSecondsAreTakenOnce) {
  SiteBook book;
  book.Missed("a", "late");
  EXPECT_EQ(book.at("a").rounds_missed, 1);
  EXPECT_EQ(book.at("a").last_miss_reason, "late");
  SiteProgress p;
  p.set_compute_seconds(8);
  p.set_wait_seconds(2);
  book.ProgressReported("a", p, At(1));
  double computed = 0, waited = 0;
  book.TakeRoundSeconds(&computed, &waited);
  EXPECT_EQ(computed, 8);
  EXPECT_EQ(waited, 2);
  book.TakeRoundSeconds(&computed, &waited);
  EXPECT_EQ(computed, 0);
  EXPECT_EQ(book.find("b"), nullptr);
}

TEST(SiteBookTest, SecondsOfAProcessThatGoesOnCountFromItsNextWordAndThoseOfANewOneFromItsStart) {
  SiteBook book;
  book.at("a");
  book.at("b");
  book.CountSecondsFromNow();
  book.NewProcess("b", 2, 0);
  SiteProgress p;
  p.set_compute_seconds(100);
  p.set_wait_seconds(10);
  book.ProgressReported("a", p, At(1));
  p.set_compute_seconds(103);
  p.set_wait_seconds(11);
  book.ProgressReported("a", p, At(2));
  p.set_compute_seconds(5);
  p.set_wait_seconds(0);
  book.ProgressReported("b", p, At(2));
  double computed = 0, waited = 0;
  book.TakeRoundSeconds(&computed, &waited);
  EXPECT_EQ(computed, 3 + 5);
  EXPECT_EQ(waited, 1);
}

TEST(SiteBookTest, FiguresThatAreNoNumbersOrTooLargeAreMadePlausible) {
  SiteProgress p;
  p.set_loss(std::numeric_limits<double>::quiet_NaN());
  p.set_steps_per_second(-std::numeric_limits<double>::infinity());
  p.set_compute_seconds(1.5);
  p.set_inner_steps(std::numeric_limits<int64_t>::max());
  p.set_tokens(std::numeric_limits<int64_t>::min());
  p.set_anchor_round(7);
  p.set_activity("training");
  MakePlausible(&p);
  EXPECT_EQ(p.loss(), 0);
  EXPECT_EQ(p.steps_per_second(), 0);
  EXPECT_EQ(p.compute_seconds(), 1.5);
  EXPECT_EQ(p.inner_steps(), int64_t{1} << 48);
  EXPECT_EQ(p.tokens(), -1);
  EXPECT_EQ(p.anchor_round(), 7);
  EXPECT_EQ(p.activity(), "training");
}

TEST(SiteBookTest, WhatIsForfeitedOnlyGrows) {
  SiteBook book;
  Forfeited f;
  f.set_steps(3);
  f.set_square_sum(0.5);
  book.Forfeited("a", f);
  f.set_steps(-1);
  f.set_square_sum(-2);
  book.Forfeited("a", f);
  EXPECT_EQ(book.at("a").forfeited_steps, 3);
  EXPECT_EQ(book.at("a").forfeited_square_sum, 0.5);
}

TEST(SiteBook, WhatDecayTookIsForfeitedOnceAndOfEachProcess) {
  SiteBook book;
  book.Decayed("a", 0.5);
  book.Decayed("a", 0.5);  // nothing more since
  book.Decayed("a", 0.75);
  EXPECT_EQ(book.at("a").forfeited_square_sum, 0.75);
  book.Decayed("a", 0.25);  // a new process
  book.Decayed("a", 0.5);
  EXPECT_EQ(book.at("a").forfeited_square_sum, 1.25);
}

}  // namespace
}  // namespace isthmus
