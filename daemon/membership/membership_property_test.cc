// Thousands of random lives: whatever happens in whatever order, these hold after every event.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/base/random.h"
#include "daemon/base/test_seeds.h"
#include "daemon/membership/membership.h"

namespace isthmus {
namespace {

constexpr int kEvents = 200;

// Drives a Membership at random and knows, independently of it, which lives may still be alive.
class RandomRun {
 public:
  explicit RandomRun(uint64_t seed) : random_(seed) {}

  void Step() {
    now_ += absl::Milliseconds(random_.Below(1500));
    const SiteName name(1, static_cast<char>('a' + random_.Below(4)));
    // Mostly the last life given out, sometimes an older or made-up one.
    const Incarnation last = last_given_[name];
    const SiteLife life{name,
                        random_.Chance(0.85) ? last : static_cast<Incarnation>(random_.Below(last + 2))};
    const bool was_alive = membership_.CheckLife(life).ok();
    switch (random_.Below(11)) {
      case 0:
        Join(name);
        break;
      case 1:
      case 2:
        Take(life, was_alive, membership_.HeartbeatReceived(life, now_));
        break;
      case 3:
        Take(life, was_alive, membership_.Heard(life, now_));
        break;
      case 4:
        Take(life, true, membership_.ConnectionLost(life, now_));
        break;
      case 5:
        Take(life, was_alive, membership_.ConnectionRestored(life, now_));
        break;
      case 6:
        Take(life, was_alive, membership_.CaughtUp(life, now_));
        break;
      case 7:
        Take(life, was_alive, membership_.LeaveRequested(life, now_));
        break;
      case 8:
        if (random_.Chance(0.3)) Take(life, true, membership_.Evict(life, "chance", now_));
        break;
      case 9:
        Freeze();
        break;
      default:
        Take(life, true, membership_.Tick(now_));
        // A tick leaves nothing due.
        EXPECT_GT(membership_.NextDeadline(), now_);
        break;
    }
    Check();
  }

 private:
  void Join(const SiteName& name) {
    const Incarnation incarnation = last_given_[name] + 1;
    const JoinAnswer answer = membership_.JoinRequested(name, incarnation, now_);
    Take({name, incarnation}, true, answer.effects);
    if (!answer.status.ok()) return;
    for (Incarnation old = 1; old < incarnation; ++old) EXPECT_FALSE(membership_.CheckLife({name, old}).ok());
    last_given_[name] = incarnation;
  }

  void Freeze() {
    const View before = membership_.view();
    Take({}, true, membership_.FreezeView(now_));
    const View& after = membership_.view();
    EXPECT_EQ(after.id, before.id + (after.members == before.members ? 0 : 1));
    for (const SiteLife& life : after.members) EXPECT_TRUE(membership_.CheckLife(life).ok()) << life.name;
    std::set<SiteName> names;
    for (const SiteLife& life : after.members)
      EXPECT_TRUE(names.insert(life.name).second) << "two lives in a view";
    view_ = after;
  }

  void Take(const SiteLife& life, bool is_expected_alive, const MemberEffects& effects) {
    bool is_fenced = false;
    for (const MemberEffect& e : effects) {
      EXPECT_FALSE(e.reason.empty());
      if (e.change == MemberChange::kFenced) {
        is_fenced = true;
        EXPECT_EQ(e.life, life);
        continue;
      }
      // What is over stays over.
      EXPECT_EQ(over_.count(e.life), 0) << MemberChangeName(e.change) << " after the end of " << e.life.name;
      if (e.change == MemberChange::kDied || e.change == MemberChange::kLeft ||
          e.change == MemberChange::kEvicted) {
        over_.insert(e.life);
      }
    }
    EXPECT_EQ(is_fenced, !is_expected_alive);
  }

  void Check() {
    EXPECT_EQ(membership_.view().id, view_.id) << "the view changed outside a boundary";
    EXPECT_EQ(membership_.view().members, view_.members) << "the view changed outside a boundary";
    int living = 0;
    for (const MemberStatus& s : membership_.Snapshot(now_)) {
      const bool is_over = s.state == SiteState::kDead || s.state == SiteState::kLeft;
      EXPECT_EQ(is_over, over_.count(s.life) > 0) << s.life.name;
      EXPECT_EQ(is_over, !membership_.CheckLife(s.life).ok());
      EXPECT_GE(s.silence, absl::ZeroDuration());
      living += !is_over;
    }
    EXPECT_EQ(membership_.living(), living);
  }

  Random random_;
  absl::Time now_ = absl::UnixEpoch();
  Membership membership_;
  View view_;
  std::map<SiteName, Incarnation> last_given_;
  std::set<SiteLife> over_;
};

TEST(MembershipProperty, HoldsOverThousandsOfRandomLives) {
  for (uint64_t seed : TestSeeds(2000)) {
    SCOPED_TRACE(ReplayLine("//daemon/membership:membership_property_test", seed));
    RandomRun run(seed);
    for (int i = 0; i < kEvents && !testing::Test::HasFailure(); ++i) run.Step();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace isthmus
