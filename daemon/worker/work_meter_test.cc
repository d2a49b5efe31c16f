#include "daemon/worker/work_meter.h"

#include "gtest/gtest.h"

namespace isthmus {
namespace {

absl::Time At(int64_t seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

TEST(WorkMeterTest, NothingCountsBeforeTheFirstWord) {
  WorkMeter meter;
  meter.Advance(At(100));
  EXPECT_EQ(meter.busy(), absl::ZeroDuration());
  EXPECT_EQ(meter.waiting(), absl::ZeroDuration());
}

TEST(WorkMeterTest, TimeIsSplitIntoBusyAndWaiting) {
  WorkMeter meter;
  meter.SetBusy(true, At(10));
  meter.SetBusy(true, At(12));
  meter.SetBusy(false, At(15));
  meter.SetBusy(true, At(22));
  meter.Advance(At(23));
  EXPECT_EQ(meter.busy(), absl::Seconds(6));
  EXPECT_EQ(meter.waiting(), absl::Seconds(7));
}

TEST(WorkMeterTest, AClockThatStandsStillAddsNothing) {
  WorkMeter meter;
  meter.SetBusy(true, At(10));
  meter.Advance(At(10));
  EXPECT_EQ(meter.busy(), absl::ZeroDuration());
}

}  // namespace
}  // namespace isthmus
