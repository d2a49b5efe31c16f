#include "daemon/rounds/range_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "daemon/base/random.h"
#include "daemon/base/test_seeds.h"

namespace isthmus {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(RangeSet, MergesNeighboursAndCountsWhatIsNew) {
  RangeSet set;
  EXPECT_EQ(set.Add({0, 10, 20}), 10);
  EXPECT_EQ(set.Add({0, 30, 40}), 10);
  EXPECT_EQ(set.Add({0, 20, 30}), 10);
  EXPECT_THAT(set.All(), ElementsAre(DataRange{0, 10, 40}));
  EXPECT_EQ(set.Add({0, 5, 50}), 15);
  EXPECT_EQ(set.Add({0, 5, 50}), 0);
  EXPECT_EQ(set.size(), 45);
}

TEST(RangeSet, KeepsPassesApart) {
  RangeSet set;
  set.Add({0, 10, 20});
  set.Add({1, 20, 30});
  EXPECT_THAT(set.All(), ElementsAre(DataRange{0, 10, 20}, DataRange{1, 20, 30}));
  EXPECT_FALSE(set.Contains({1, 10, 20}));
  EXPECT_EQ(set.First(), (DataRange{0, 10, 20}));
}

TEST(RangeSet, TakesOutTheMiddleOfARange) {
  RangeSet set;
  set.Add({2, 0, 100});
  EXPECT_THAT(set.Take({2, 40, 60}), ElementsAre(DataRange{2, 40, 60}));
  EXPECT_THAT(set.Take({2, 30, 70}), ElementsAre(DataRange{2, 30, 40}, DataRange{2, 60, 70}));
  EXPECT_THAT(set.All(), ElementsAre(DataRange{2, 0, 30}, DataRange{2, 70, 100}));
  EXPECT_THAT(set.Take({2, 30, 70}), IsEmpty());
  EXPECT_TRUE(set.Contains({2, 70, 100}));
  EXPECT_FALSE(set.Contains({2, 29, 31}));
}

TEST(RangeSet, DoesWhatASetOfPositionsDoes) {
  for (uint64_t seed : TestSeeds(300)) {
    SCOPED_TRACE(ReplayLine("//daemon/rounds:range_set_test", seed));
    Random random(seed);
    RangeSet set;
    std::set<std::pair<int64_t, int64_t>> positions;
    for (int i = 0; i < 60; ++i) {
      const int64_t pass = random.Below(2), begin = random.Below(40), end = begin + 1 + random.Below(12);
      int64_t changed = 0;
      if (random.Chance(0.6)) {
        for (int64_t p = begin; p < end; ++p) changed += positions.insert({pass, p}).second;
        ASSERT_EQ(set.Add({pass, begin, end}), changed);
      } else {
        for (int64_t p = begin; p < end; ++p) changed += positions.erase({pass, p});
        int64_t taken = 0;
        for (const DataRange& r : set.Take({pass, begin, end})) taken += r.size();
        ASSERT_EQ(taken, changed);
      }
      ASSERT_EQ(set.size(), positions.size());
      int64_t covered = 0;
      DataRange last{-1, 0, 0};
      for (const DataRange& r : set.All()) {
        ASSERT_FALSE(r.pass == last.pass && r.begin <= last.end) << "neighbours are not merged";
        for (int64_t p = r.begin; p < r.end; ++p) covered += positions.count({r.pass, p});
        last = r;
      }
      ASSERT_EQ(covered, positions.size());
    }
  }
}

}  // namespace
}  // namespace isthmus
