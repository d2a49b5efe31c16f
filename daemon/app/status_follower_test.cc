#include "daemon/app/status_follower.h"

#include <string>
#include <vector>

#include "daemon/app/fake_status_watch.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RunStatus AtRound(int64_t round) {
  RunStatus status;
  status.set_round(round);
  return status;
}

class StatusFollowerTest : public ::testing::Test {
 protected:
  absl::Status Follow(FakeStatusWatch* fake, absl::Duration give_up_after, int64_t last_round) {
    return FollowStatus(
        fake->watch(), fake->clock, StatusRequest(), give_up_after,
        [&](const RunStatus& status) {
          rounds_.push_back(status.round());
          return status.round() < last_round;
        },
        [&](absl::string_view text) { notices_.emplace_back(text); });
  }

  std::vector<int64_t> rounds_;
  std::vector<std::string> notices_;
};

TEST_F(StatusFollowerTest, EndsWhenEnoughWasSeen) {
  FakeStatusWatch fake({{{AtRound(1), AtRound(2), AtRound(3)}}});
  EXPECT_TRUE(Follow(&fake, absl::Seconds(10), 2).ok());
  EXPECT_THAT(rounds_, ElementsAre(1, 2));
  EXPECT_TRUE(notices_.empty());
}

TEST_F(StatusFollowerTest, GoesOnAfterABrokenStreamAndSaysSoOnce) {
  FakeStatusWatch fake({{{AtRound(1)}}, {}, {}, {{AtRound(2)}}});
  EXPECT_TRUE(Follow(&fake, absl::Seconds(10), 2).ok());
  EXPECT_THAT(rounds_, ElementsAre(1, 2));
  EXPECT_THAT(notices_, ElementsAre("nobody answers; trying again for 10s"));
}

TEST_F(StatusFollowerTest, GivesUpAfterTheTimeGivenAndNotBefore) {
  FakeStatusWatch fake({});
  const absl::Time start = fake.clock.SteadyNow();
  const absl::Status status = Follow(&fake, absl::Seconds(10), 2);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(fake.clock.SteadyNow() - start, absl::Seconds(10));
}

TEST_F(StatusFollowerTest, AStatusStartsTheTimeAnew) {
  FakeStatusWatch fake({{}, {}, {{AtRound(1)}}, {}, {}, {{AtRound(2)}}});
  EXPECT_TRUE(Follow(&fake, absl::Seconds(4), 2).ok());
}

TEST_F(StatusFollowerTest, AnotherRunThanTheOneAskedForIsAnErrorThatNamesBoth) {
  FakeStatusWatch fake({{{AtRound(1)}}});
  StatusRequest request;
  request.set_run_name("mine");
  const absl::Status status = FollowStatus(
      fake.watch(), fake.clock, request, absl::Seconds(10), [](const RunStatus&) { return true; },
      [](absl::string_view) {});
  EXPECT_EQ(status, absl::FailedPreconditionError("this coordinator keeps run '', not 'mine'"));
}

TEST_F(StatusFollowerTest, WithoutPatienceTheFirstFailureIsTheAnswer) {
  FakeStatusWatch fake({});
  EXPECT_TRUE(absl::IsUnavailable(Follow(&fake, absl::ZeroDuration(), 2)));
  EXPECT_EQ(fake.requests.size(), 1);
}

TEST_F(StatusFollowerTest, AnErrorThatWillNotPassIsReturnedAtOnce) {
  FakeStatusWatch fake({{{}, absl::NotFoundError("run \"y\" is kept here, not \"x\"")}});
  const absl::Status status = Follow(&fake, absl::Seconds(10), 2);
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("not \"x\""));
  EXPECT_EQ(fake.requests.size(), 1);
}

}  // namespace
}  // namespace isthmus
