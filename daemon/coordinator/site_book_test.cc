#include "daemon/coordinator/site_book.h"

#include <gtest/gtest.h>

#include <limits>

namespace isthmus {
namespace {

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

}  // namespace
}  // namespace isthmus
