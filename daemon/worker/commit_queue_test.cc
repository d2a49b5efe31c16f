#include "daemon/worker/commit_queue.h"

#include "gtest/gtest.h"

namespace isthmus {
namespace {

CommitRecord Record(int64_t round, int64_t base) {
  CommitRecord r;
  r.mutable_key()->set_round(round);
  r.set_base_round(base);
  return r;
}

TEST(CommitQueueTest, CommitsComeOutInOrderOnceTheirBytesAreHere) {
  CommitQueue queue;
  EXPECT_TRUE(queue.Add(Record(5, 4), 3));
  EXPECT_TRUE(queue.Add(Record(4, 3), 3));
  EXPECT_EQ(queue.newest(), 5);
  EXPECT_EQ(queue.TakeMissing(), (std::vector<int64_t>{4, 5}));
  EXPECT_TRUE(queue.TakeMissing().empty());
  CommitQueue::Ready ready;
  queue.Fetched(5, "five");
  EXPECT_FALSE(queue.TakeNext(3, &ready));
  queue.Fetched(4, "four");
  ASSERT_TRUE(queue.TakeNext(3, &ready));
  EXPECT_EQ(ready.record.key().round(), 4);
  EXPECT_EQ(ready.update, "four");
  EXPECT_FALSE(queue.TakeNext(3, &ready));
  ASSERT_TRUE(queue.TakeNext(4, &ready));
  EXPECT_EQ(ready.update, "five");
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.newest(), -1);
}

TEST(CommitQueueTest, WhatIsKnownOrAppliedIsNoNews) {
  CommitQueue queue;
  EXPECT_FALSE(queue.Add(Record(3, 2), 3));
  EXPECT_TRUE(queue.Add(Record(4, 3), 3));
  EXPECT_FALSE(queue.Add(Record(4, 3), 3));
}

TEST(CommitQueueTest, AbortedRoundsLeaveGapsThatAreNoneInTheChain) {
  CommitQueue queue;
  queue.Add(Record(9, 3), 3);
  queue.TakeMissing();
  queue.Fetched(9, "nine");
  CommitQueue::Ready ready;
  EXPECT_TRUE(queue.TakeNext(3, &ready));
}

TEST(CommitQueueTest, AFetchThatFailedIsMissingAgain) {
  CommitQueue queue;
  queue.Add(Record(4, 3), 3);
  queue.TakeMissing();
  queue.FetchFailed(4);
  EXPECT_EQ(queue.TakeMissing(), (std::vector<int64_t>{4}));
  queue.FetchFailed(77);
  queue.Fetched(77, "never asked for");
  EXPECT_EQ(queue.Find(77), nullptr);
}

TEST(CommitQueueTest, RoundsUpToAnAnchorAreDropped) {
  CommitQueue queue;
  for (int64_t round : {4, 5, 6}) queue.Add(Record(round, round - 1), 3);
  queue.DropUpTo(5);
  EXPECT_EQ(queue.Find(5), nullptr);
  ASSERT_NE(queue.Find(6), nullptr);
  queue.Clear();
  EXPECT_TRUE(queue.empty());
}

TEST(CommitQueueTest, ACommitIsFoundByTheFrameOfASite) {
  CommitQueue queue;
  CommitRecord r = Record(4, 3);
  IncludedContribution* c = r.add_included();
  c->mutable_life()->set_site("a");
  c->set_frame_digest("digest");
  queue.Add(r, 3);
  ASSERT_NE(queue.FindFrame("a", "digest"), nullptr);
  EXPECT_EQ(queue.FindFrame("a", "digest")->key().round(), 4);
  EXPECT_EQ(queue.FindFrame("b", "digest"), nullptr);
  EXPECT_EQ(queue.FindFrame("a", "other"), nullptr);
}

}  // namespace
}  // namespace isthmus
