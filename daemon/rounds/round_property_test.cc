// Thousands of random rounds: the rules of ROUNDS §6, looked at from outside after every event.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/random.h"
#include "daemon/base/test_seeds.h"
#include "daemon/rounds/round.h"

namespace isthmus {
namespace {

class RandomRound {
 public:
  explicit RandomRound(uint64_t seed) : random_(seed), round_(MakeRound()) {}

  void Run() {
    for (int i = 0; i < 60 && !testing::Test::HasFailure(); ++i) {
      now_ += absl::Milliseconds(random_.Below(4000));
      // Deadlines are kept, as the coordinator keeps them.
      while (round_.NextDeadline() <= now_) Check(round_.Tick(round_.NextDeadline()), round_.NextDeadline());
      Event();
    }
    now_ = std::max(now_, opened_ + options_.longest_round);
    Check(round_.Tick(now_), now_);
    EXPECT_EQ(decisions_, 1) << "no decision by the deadline";
  }

 private:
  RoundCore MakeRound() {
    options_.longest_round = absl::Seconds(10 + random_.Below(60));
    const int sites = 1 + random_.Below(7);
    if (random_.Chance(0.3)) options_.quorum = 1 + random_.Below(8);
    if (random_.Chance(0.3)) options_.minimum = 1 + random_.Below(8);
    opening_.key.round = 1 + random_.Below(8);
    for (int i = 0; i < sites; ++i) opening_.view.push_back({absl::StrCat("site", i), 1});
    if (random_.Chance(0.8)) opening_.grace = absl::Milliseconds(random_.Below(9000));
    opening_.is_last = random_.Chance(0.15);
    return RoundCore(options_, opening_, opened_);
  }

  void Event() {
    SiteLife life{absl::StrCat("site", random_.Below(8)), random_.Chance(0.9) ? 1 : 2};
    const bool is_member = std::count(opening_.view.begin(), opening_.view.end(), life) > 0;
    const bool is_open = decisions_ == 0;
    if (random_.Chance(0.5)) {
      if (is_member && is_open && arrived_.insert(life).second && arrived_.size() == round_.quorum()) {
        quorum_at_ = now_;
      }
      Check(round_.ContributionArrived(life, Digest{1, random_.Next()}, now_), now_);
    } else if (random_.Chance(0.4)) {
      if (is_member && is_open) gone_.insert(life);
      Check(round_.SiteGone(life, "died", now_), now_);
    } else {
      Check(round_.Tick(now_), now_);
    }
  }

  void Check(const RoundDecision& decision, absl::Time now) {
    EXPECT_FALSE(decision.reason.empty());
    std::vector<SiteLife> missing;
    for (const SiteLife& life : opening_.view) {
      if (arrived_.count(life) == 0 && gone_.count(life) == 0) missing.push_back(life);
    }
    if (decision.verdict == RoundVerdict::kWait) {
      EXPECT_TRUE(decision.included.empty());
      if (decisions_ > 0) return;
      EXPECT_FALSE(missing.empty()) << "waits for nobody";
      EXPECT_LT(now, opened_ + options_.longest_round) << "waits beyond the deadline";
      EXPECT_GT(round_.NextDeadline(), now);
      return;
    }
    EXPECT_EQ(++decisions_, 1) << "decided twice";
    if (decision.verdict == RoundVerdict::kAbort) {
      EXPECT_TRUE(decision.included.empty());
      const bool is_too_few = arrived_.size() < std::max<size_t>(round_.minimum(), 1);
      EXPECT_TRUE(is_too_few) << decision.reason;
      EXPECT_TRUE(missing.empty() || now >= opened_ + options_.longest_round) << decision.reason;
      return;
    }
    EXPECT_EQ(decision.included, std::vector<SiteLife>(arrived_.begin(), arrived_.end()));
    EXPECT_FALSE(decision.included.empty());
    switch (decision.rule) {
      case CloseRule::kAllArrived:
        EXPECT_TRUE(missing.empty());
        break;
      case CloseRule::kQuorumAndGrace:
        EXPECT_GE(arrived_.size(), round_.quorum());
        EXPECT_GE(now, quorum_at_ + *opening_.grace);
        EXPECT_GT(opening_.key.round, 3);
        EXPECT_FALSE(opening_.is_last);
        break;
      case CloseRule::kDeadline:
        EXPECT_GE(now, opened_ + options_.longest_round);
        EXPECT_GE(arrived_.size(), round_.minimum());
        break;
      case CloseRule::kNone:
        ADD_FAILURE() << "closed by no rule";
    }
  }

  Random random_;
  RoundOptions options_;
  RoundOpening opening_;
  const absl::Time opened_ = absl::UnixEpoch();
  absl::Time now_ = opened_;
  absl::Time quorum_at_ = absl::InfiniteFuture();
  std::set<SiteLife> arrived_, gone_;
  int decisions_ = 0;
  RoundCore round_;
};

TEST(RoundProperty, HoldsOverThousandsOfRandomRounds) {
  for (uint64_t seed : TestSeeds(20000)) {
    SCOPED_TRACE(ReplayLine("//daemon/rounds:round_property_test", seed));
    RandomRound(seed).Run();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace isthmus
