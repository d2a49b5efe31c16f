#include "daemon/worker/lease_book.h"

#include "gtest/gtest.h"

namespace isthmus {
namespace {

std::vector<int64_t> PositionsOf(const std::vector<LeasePosition>& taken) {
  std::vector<int64_t> out;
  for (const LeasePosition& p : taken) out.push_back(p.pass * 1000 + p.position);
  return out;
}

TEST(LeaseBookTest, PositionsAreTakenInOrderAcrossLeases) {
  LeaseBook book;
  EXPECT_EQ(book.next_number(), 1);
  book.Granted(1, 0, 10, 13);
  book.Granted(2, 1, 0, 4);
  EXPECT_EQ(book.left(), 7);
  EXPECT_EQ(PositionsOf(book.Take(4)), (std::vector<int64_t>{10, 11, 12, 1000}));
  EXPECT_EQ(PositionsOf(book.Left()), (std::vector<int64_t>{1001, 1002, 1003}));
  EXPECT_EQ(book.TakeTrained(), (std::vector<LeaseSpan>{{1, 10, 13}, {2, 0, 1}}));
  EXPECT_TRUE(book.TakeTrained().empty());
  EXPECT_EQ(book.next_number(), 3);
}

TEST(LeaseBookTest, TooFewPositionsAreNotTakenAtAll) {
  LeaseBook book;
  book.Granted(1, 0, 0, 3);
  EXPECT_TRUE(book.Take(4).empty());
  EXPECT_EQ(book.left(), 3);
  EXPECT_TRUE(book.TakeTrained().empty());
}

TEST(LeaseBookTest, AGrantThatWasNotAskedForOrCameTwiceIsIgnored) {
  LeaseBook book;
  book.Granted(2, 0, 0, 5);
  EXPECT_EQ(book.left(), 0);
  book.Granted(1, 0, 0, 5);
  book.Granted(1, 0, 5, 10);
  EXPECT_EQ(book.left(), 5);
  book.Granted(2, 0, 7, 7);
  EXPECT_EQ(book.next_number(), 2);
}

TEST(LeaseBookTest, SpansTakenOneAfterTheOtherAreMerged) {
  LeaseBook book;
  book.Granted(1, 0, 0, 6);
  book.Take(2);
  book.Take(2);
  EXPECT_EQ(book.TakeTrained(), (std::vector<LeaseSpan>{{1, 0, 4}}));
}

TEST(LeaseBookTest, SpansOfAFrameThatNeverCountedAreNamedAgainFirst) {
  LeaseBook book;
  book.Granted(1, 0, 0, 6);
  book.Take(2);
  const std::vector<LeaseSpan> dropped = book.TakeTrained();
  book.Take(1);
  book.PutBack(dropped);
  EXPECT_EQ(book.TakeTrained(), (std::vector<LeaseSpan>{{1, 0, 2}, {1, 2, 3}}));
}

TEST(LeaseBookTest, ANewLifeBeginsWithNothing) {
  LeaseBook book;
  book.Granted(1, 0, 0, 6);
  book.Take(2);
  book.Restart();
  EXPECT_EQ(book.left(), 0);
  EXPECT_TRUE(book.TakeTrained().empty());
  EXPECT_EQ(book.next_number(), 1);
}

}  // namespace
}  // namespace isthmus
