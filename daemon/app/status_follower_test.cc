#include "daemon/app/status_follower.h"

#include <string>
#include <vector>

#include "daemon/app/fake_status_client.h"
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
  absl::Status Follow(FakeStatusClient* client, absl::Duration give_up_after, int64_t last_round) {
    return FollowStatus(
        client, &clock_, StatusRequest(), give_up_after,
        [&](const RunStatus& status) {
          rounds_.push_back(status.round());
          return status.round() < last_round;
        },
        [&](absl::string_view text) { notices_.emplace_back(text); });
  }

  ImpatientClock clock_;
  std::vector<int64_t> rounds_;
  std::vector<std::string> notices_;
};

TEST_F(StatusFollowerTest, EndsWhenEnoughWasSeen) {
  FakeStatusClient client({{{AtRound(1), AtRound(2), AtRound(3)}}});
  EXPECT_TRUE(Follow(&client, absl::Seconds(10), 2).ok());
  EXPECT_THAT(rounds_, ElementsAre(1, 2));
  EXPECT_TRUE(notices_.empty());
}

TEST_F(StatusFollowerTest, GoesOnAfterABrokenStreamAndSaysSoOnce) {
  FakeStatusClient client({{{AtRound(1)}}, {}, {}, {{AtRound(2)}}});
  EXPECT_TRUE(Follow(&client, absl::Seconds(10), 2).ok());
  EXPECT_THAT(rounds_, ElementsAre(1, 2));
  EXPECT_THAT(notices_, ElementsAre("nobody answers; trying again for 10s"));
}

TEST_F(StatusFollowerTest, GivesUpAfterTheTimeGivenAndNotBefore) {
  FakeStatusClient client({});
  const absl::Time start = clock_.SteadyNow();
  const absl::Status status = Follow(&client, absl::Seconds(10), 2);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(clock_.SteadyNow() - start, absl::Seconds(10));
  // Pauses of 0.2, 0.4, 0.8, 1.6, 3.2 and what was left.
  EXPECT_EQ(client.requests.size(), 7);
}

TEST_F(StatusFollowerTest, WithoutPatienceTheFirstFailureIsTheAnswer) {
  FakeStatusClient client({});
  EXPECT_TRUE(absl::IsUnavailable(Follow(&client, absl::ZeroDuration(), 2)));
  EXPECT_EQ(client.requests.size(), 1);
}

TEST_F(StatusFollowerTest, AnErrorThatWillNotPassIsReturnedAtOnce) {
  FakeStatusClient client({{{}, absl::NotFoundError("run \"y\" is kept here, not \"x\"")}});
  const absl::Status status = Follow(&client, absl::Seconds(10), 2);
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("not \"x\""));
  EXPECT_EQ(client.requests.size(), 1);
}

TEST_F(StatusFollowerTest, AStreamThatEndsWellIsTakenUpAgain) {
  FakeStatusClient client({{{AtRound(1)}, absl::OkStatus()}, {{AtRound(2)}, absl::OkStatus()}});
  EXPECT_TRUE(Follow(&client, absl::Seconds(10), 2).ok());
  EXPECT_THAT(rounds_, ElementsAre(1, 2));
}

}  // namespace
}  // namespace isthmus
