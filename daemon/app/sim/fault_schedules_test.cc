// The invariants of ARCHITECTURE §3 over seeded fault schedules; one shard runs every n-th seed.
#include <cstdlib>
#include <string>

#include "absl/strings/numbers.h"
#include "daemon/app/sim/schedule_run.h"
#include "daemon/base/logging.h"
#include "daemon/base/test_seeds.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

constexpr int kSeeds = 520;
constexpr uint64_t kParts = 4;

// Parts are tests of their own, so that the runner's shards share them.
class FaultSchedulesTest : public testing::TestWithParam<uint64_t> {};

TEST_P(FaultSchedulesTest, InvariantsHold) {
  InitLogging(LogForm::kText, LogLevel::kError);
  int64_t run = 0;
  for (uint64_t seed : TestSeeds(kSeeds)) {
    if (seed % kParts != GetParam()) continue;
    const ScheduleOutcome outcome = RunSchedule(MakeFaultSchedule(seed), nullptr);
    ++run;
    EXPECT_TRUE(outcome.violations.empty())
        << DescribeSchedule(MakeFaultSchedule(seed)) << outcome.Text(seed);
  }
  RecordProperty("schedules", static_cast<int>(run));
}

INSTANTIATE_TEST_SUITE_P(Parts, FaultSchedulesTest, testing::Range<uint64_t>(0, kParts));

}  // namespace
}  // namespace isthmus
