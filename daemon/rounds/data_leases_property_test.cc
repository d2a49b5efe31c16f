// Thousands of random histories of leases, contributions, outcomes, resets and deaths.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/random.h"
#include "daemon/base/test_seeds.h"
#include "daemon/rounds/data_leases.h"

namespace isthmus {
namespace {

using Position = std::pair<int64_t, int64_t>;  // pass, position

bool Same(const LeaseRecord& a, const LeaseRecord& b) {
  return a.kind == b.kind && a.life == b.life && a.number == b.number && a.pass == b.pass &&
         a.begin == b.begin && a.end == b.end && a.frame == b.frame;
}

// Three sites on shared data. Keeps its own slow account of every position.
class RandomHistory {
 public:
  explicit RandomHistory(uint64_t seed)
      : random_(seed), size_(20 + random_.Below(60)), leases_(DataMode::kShared, size_) {}

  void Step() {
    const SiteName name(1, static_cast<char>('a' + random_.Below(3)));
    const SiteLife life{name, lives_[name]};
    switch (random_.Below(8)) {
      case 0:
      case 1:
      case 2:
        Lease(life);
        break;
      case 3:
      case 4:
        Contribute(life);
        break;
      case 5:
        Settle(life);
        break;
      case 6:
        if (random_.Chance(0.3)) Forfeit(life);
        break;
      default:
        if (random_.Chance(0.3)) Die(life);
        break;
    }
    Check();
  }

 private:
  struct Held {
    std::map<int64_t, std::set<Position>> unused;
    std::set<Position> carried, pending;
    Digest frame;  // zero: none pending
  };

  void Lease(const SiteLife& life) {
    const bool has_waiting = !waiting_.empty();
    const absl::StatusOr<DataLease> lease = leases_.Next(life, 1 + random_.Below(15));
    if (!lease.ok()) {
      EXPECT_EQ(lease.status().code(), absl::StatusCode::kResourceExhausted);
      return;
    }
    for (int64_t p = lease->range.begin; p < lease->range.end; ++p) {
      const Position at{lease->range.pass, p};
      // First what is to be given out again; otherwise what nobody ever had.
      if (has_waiting)
        EXPECT_EQ(waiting_.erase(at), 1);
      else
        EXPECT_TRUE(given_.insert(at).second) << "given out twice without reason";
      held_[life].unused[lease->number].insert(at);
    }
  }

  // A random part of one of its leases, taken out of it.
  std::vector<TrainedRange> Train(Held* held, std::set<Position>* into) {
    if (held->unused.empty()) return {};
    auto lease = std::next(held->unused.begin(), random_.Below(held->unused.size()));
    const int64_t begin = lease->second.begin()->second;
    int64_t end = begin;
    const int64_t wanted = 1 + random_.Below(10);
    while (end - begin < wanted && lease->second.count({lease->second.begin()->first, end}) > 0) {
      const Position at = *lease->second.begin();
      if (at.second != end) break;
      ++end;
      lease->second.erase(lease->second.begin());
      into->insert(at);
      ++trained_[at];
      if (lease->second.empty()) break;
    }
    const TrainedRange range{lease->first, begin, end};
    if (lease->second.empty()) held->unused.erase(lease);
    return {range};
  }

  void Contribute(const SiteLife& life) {
    auto it = held_.find(life);
    if (it == held_.end() || !it->second.frame.is_zero()) return;  // one pending at a time
    Held& held = it->second;
    held.pending = std::exchange(held.carried, {});
    held.frame = {1, ++frames_};
    const std::vector<TrainedRange> ranges = Train(&held, &held.pending);
    EXPECT_TRUE(leases_.Contributed(life, held.frame, ranges).ok());
  }

  void Settle(const SiteLife& life) {
    const bool is_committed = random_.Chance(0.6);
    for (auto& [other, held] : held_) {
      if (other.name != life.name || held.frame.is_zero()) continue;
      if (is_committed)
        leases_.Committed(life.name, held.frame);
      else
        leases_.Dropped(life.name, held.frame);
      std::set<Position>& to = orphans_.count(held.frame) > 0 ? waiting_ : held.carried;
      if (!is_committed) to.insert(held.pending.begin(), held.pending.end());
      held.pending.clear();
      held.frame = {};
    }
  }

  void Forfeit(const SiteLife& life) {
    auto it = held_.find(life);
    if (it == held_.end()) return;
    const std::vector<TrainedRange> ranges = Train(&it->second, &it->second.carried);
    EXPECT_EQ(leases_.Forfeited(life, ranges), it->second.carried.size());
    waiting_.insert(it->second.carried.begin(), it->second.carried.end());
    it->second.carried.clear();
    orphans_.insert(it->second.frame);
  }

  void Die(const SiteLife& life) {
    Held& held = held_[life];
    size_t given = held.carried.size();
    waiting_.insert(held.carried.begin(), held.carried.end());
    for (const auto& [number, unused] : held.unused) {
      given += unused.size();
      waiting_.insert(unused.begin(), unused.end());
    }
    held.unused.clear();
    held.carried.clear();
    orphans_.insert(held.frame);
    EXPECT_EQ(leases_.SiteGone(life), given);
    EXPECT_EQ(leases_.Next(life, 1).status().code(), absl::StatusCode::kFailedPrecondition);
    ++lives_[life.name];
  }

  void Check() {
    LeaseCounts expected;
    for (const auto& [at, times] : trained_) {
      ++expected.trained_once;
      expected.trained_again += times - 1;
    }
    std::set<Position> outstanding;
    for (const DataLease& lease : leases_.Outstanding()) {
      for (int64_t p = lease.range.begin; p < lease.range.end; ++p) {
        EXPECT_TRUE(outstanding.insert({lease.range.pass, p}).second) << "leases overlap";
        EXPECT_EQ(held_[lease.life].unused[lease.number].count({lease.range.pass, p}), 1);
      }
    }
    size_t unused = 0;
    for (const auto& [life, held] : held_) {
      for (const auto& [number, positions] : held.unused) unused += positions.size();
    }
    const LeaseCounts counts = leases_.Counts();
    EXPECT_EQ(counts.outstanding, unused);
    EXPECT_EQ(outstanding.size(), unused);
    EXPECT_EQ(counts.trained_once, expected.trained_once);
    EXPECT_EQ(counts.trained_again, expected.trained_again);
    EXPECT_EQ(counts.waiting, waiting_.size());
    // A restarted coordinator goes on from its records as if nothing had happened.
    if (!random_.Chance(0.2)) return;
    const std::vector<LeaseRecord> records = leases_.Export();
    absl::StatusOr<DataLeases> imported = DataLeases::Import(DataMode::kShared, records);
    ASSERT_TRUE(imported.ok()) << imported.status();
    const std::vector<LeaseRecord> again = imported->Export();
    ASSERT_EQ(again.size(), records.size());
    for (size_t i = 0; i < again.size(); ++i) EXPECT_TRUE(Same(again[i], records[i])) << i;
    leases_ = *std::move(imported);
  }

  Random random_;
  const int64_t size_;
  DataLeases leases_;
  std::map<SiteName, Incarnation> lives_ = {{"a", 1}, {"b", 1}, {"c", 1}};
  std::map<SiteLife, Held> held_;
  std::set<Position> given_, waiting_;
  std::map<Position, int64_t> trained_;
  std::set<Digest> orphans_;
  uint64_t frames_ = 0;
};

TEST(DataLeasesProperty, AccountForEveryPositionOverRandomHistories) {
  for (uint64_t seed : TestSeeds(1000)) {
    SCOPED_TRACE(ReplayLine("//daemon/rounds:data_leases_property_test", seed));
    RandomHistory history(seed);
    for (int i = 0; i < 120 && !testing::Test::HasFailure(); ++i) history.Step();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace isthmus
