#include "daemon/coordinator/catch_up.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

// Commits 1, 2, 4, 5 (3 aborted) with frame "a<round>" of site a; snapshots as given.
class CatchUpTest : public testing::Test {
 protected:
  explicit CatchUpTest(std::vector<int64_t> snapshots = {0}) {
    for (int64_t round : {1, 2, 4, 5}) {
      CommitRecord r;
      r.mutable_key()->set_round(round);
      IncludedContribution* c = r.add_included();
      c->mutable_life()->set_site("a");
      c->set_frame_digest(absl::StrCat("a", round));
      commits_.push_back(r);
    }
    SetSnapshots(snapshots);
  }

  void SetSnapshots(const std::vector<int64_t>& rounds) {
    snapshots_.clear();
    for (int64_t round : rounds) {
      snapshots_.emplace_back();
      snapshots_.back().set_round(round);
    }
  }

  Enlisted Plan(int64_t anchor_round, const std::string& frame = "", const std::string& site = "a") {
    return PlanCatchUp({commits_, snapshots_}, anchor_round, site, frame);
  }

  static std::vector<int64_t> RoundsOf(const Enlisted& path) {
    std::vector<int64_t> rounds;
    for (const CommitRecord& r : path.commits()) rounds.push_back(r.key().round());
    return rounds;
  }

  std::vector<CommitRecord> commits_;
  std::vector<SnapshotInfo> snapshots_;
};

TEST_F(CatchUpTest, ANewcomerGetsTheNewestSnapshotAndWhatFollows) {
  SetSnapshots({0, 2});
  const Enlisted path = Plan(-1);
  EXPECT_EQ(path.snapshot().round(), 2);
  EXPECT_EQ(RoundsOf(path), (std::vector<int64_t>{4, 5}));
}

TEST_F(CatchUpTest, AWorkerWithACommittedAnchorGetsTheUpdatesItLacks) {
  const Enlisted path = Plan(2);
  EXPECT_FALSE(path.has_snapshot());
  EXPECT_EQ(RoundsOf(path), (std::vector<int64_t>{4, 5}));
  EXPECT_TRUE(RoundsOf(Plan(5)).empty());
  EXPECT_FALSE(Plan(5).has_snapshot());
}

TEST_F(CatchUpTest, WhereTheUpdatesArePrunedOrTheRoundWasNeverCommittedItTakesTheSnapshot) {
  SetSnapshots({2, 4});
  EXPECT_EQ(Plan(1).snapshot().round(), 4);
  EXPECT_EQ(RoundsOf(Plan(1)), (std::vector<int64_t>{5}));
  EXPECT_FALSE(Plan(2).has_snapshot());
  EXPECT_EQ(Plan(3).snapshot().round(), 4);
  EXPECT_EQ(Plan(9).snapshot().round(), 4);
}

TEST_F(CatchUpTest, ThePendingFrameIsFoundBySiteAndDigestWithTheTensorsLeftOut) {
  LeftOut* l = commits_[2].add_left_out();
  l->set_tensor(7);
  l->set_included_index(0);
  commits_[2].add_left_out()->set_included_index(3);
  const Enlisted path = Plan(2, "a4");
  EXPECT_TRUE(path.pending_is_committed());
  EXPECT_EQ(path.pending_round(), 4);
  ASSERT_EQ(path.pending_left_out_size(), 1);
  EXPECT_EQ(path.pending_left_out(0), 7);
  EXPECT_FALSE(Plan(2, "a4", "b").pending_is_committed());
  EXPECT_FALSE(Plan(2, "other").pending_is_committed());
}

TEST_F(CatchUpTest, TheSameBytesInARoundTheWorkerHasAppliedAreAnotherFrame) {
  EXPECT_FALSE(Plan(2, "a2").pending_is_committed());
  commits_[3].mutable_included(0)->set_frame_digest("a2");
  EXPECT_EQ(Plan(2, "a2").pending_round(), 5);
}

TEST_F(CatchUpTest, AResyncGoesByTheNewestSnapshotWhateverTheWorkerHas) {
  SetSnapshots({0, 4});
  const Enlisted path = PlanResync({commits_, snapshots_});
  EXPECT_EQ(path.snapshot().round(), 4);
  EXPECT_EQ(RoundsOf(path), (std::vector<int64_t>{5}));
}

}  // namespace
}  // namespace isthmus
