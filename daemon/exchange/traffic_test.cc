#include "daemon/exchange/traffic.h"

#include <gtest/gtest.h>

#include "protos/status.pb.h"

namespace isthmus {
namespace {

TEST(TrafficTest, ATallyAddsUpByClassAndDirection) {
  TrafficTally tally;
  tally.Up(TrafficBytes::CONTRIBUTION, 100);
  tally.Up(TrafficBytes::CONTROL, 7);
  tally.Down(TrafficBytes::UPDATE, 30);
  TrafficTally more;
  more.Up(TrafficBytes::CONTRIBUTION, 5);
  more.Down(TrafficBytes::SNAPSHOT, 2);
  tally += more;
  EXPECT_EQ(tally.up(TrafficBytes::CONTRIBUTION), 105);
  EXPECT_EQ(tally.all_up(), 112);
  EXPECT_EQ(tally.all_down(), 32);
  tally -= more;
  EXPECT_EQ(tally.up(TrafficBytes::CONTRIBUTION), 100);
  EXPECT_EQ(tally.all_down(), 30);
}

TEST(TrafficTest, RowsAreThoseThatMovedOrAllOfThemAndAddUpAgain) {
  TrafficTally tally;
  tally.Up(TrafficBytes::CONTRIBUTION, 100);
  tally.Down(TrafficBytes::UPDATE, 30);
  CommitSummary moved, all;
  tally.AppendTo(/*only_moved=*/true, moved.mutable_traffic());
  tally.AppendTo(/*only_moved=*/false, all.mutable_traffic());
  ASSERT_EQ(moved.traffic_size(), 2);
  EXPECT_EQ(moved.traffic(0).kind(), TrafficBytes::CONTRIBUTION);
  EXPECT_EQ(moved.traffic(0).bytes_up(), 100);
  EXPECT_EQ(moved.traffic(1).kind(), TrafficBytes::UPDATE);
  EXPECT_EQ(moved.traffic(1).bytes_down(), 30);
  ASSERT_EQ(all.traffic_size(), 6);
  EXPECT_EQ(all.traffic(5).kind(), TrafficBytes::ACTIVATION_GRADIENT);
  EXPECT_EQ(all.traffic(5).bytes_up(), 0);
  TrafficTally again;
  for (const TrafficBytes& row : all.traffic()) again.Add(row);
  EXPECT_EQ(again.up(TrafficBytes::CONTRIBUTION), 100);
  EXPECT_EQ(again.down(TrafficBytes::UPDATE), 30);
}

TEST(TrafficTest, BlobsTravelInTheirClass) {
  EXPECT_EQ(TrafficOf(UPDATE), TrafficBytes::UPDATE);
  EXPECT_EQ(TrafficOf(SNAPSHOT), TrafficBytes::SNAPSHOT);
  EXPECT_EQ(TrafficOf(PACKED_SNAPSHOT), TrafficBytes::SNAPSHOT);
}

}  // namespace
}  // namespace isthmus
