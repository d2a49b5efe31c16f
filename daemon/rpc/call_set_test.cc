#include "daemon/rpc/call_set.h"

#include "gtest/gtest.h"

namespace isthmus {
namespace {

class CountingCall : public Call {
 public:
  void Abort(const absl::Status&) override { ++aborts; }
  void Wind(const absl::Status&) override { ++winds; }
  int aborts = 0, winds = 0;
};

TEST(CallSet, KeepsACallUntilItIsRemovedAndThenHandsItOver) {
  CallSet set;
  auto call = std::make_shared<CountingCall>();
  set.Add(call);
  EXPECT_EQ(call.use_count(), 2);
  FakeClock clock;
  EXPECT_FALSE(set.AwaitEmpty(&clock, clock.SteadyNow()));
  std::shared_ptr<Call> buried;
  set.Remove(call.get(), [&](std::shared_ptr<Call> last) { buried = std::move(last); });
  EXPECT_EQ(buried, call);
  EXPECT_TRUE(set.AwaitEmpty(&clock, clock.SteadyNow()));
  set.Remove(call.get());
}

TEST(CallSet, WindsUpWhatThereIsAndWhatComesAfter) {
  CallSet set;
  auto early = std::make_shared<CountingCall>();
  auto late = std::make_shared<CountingCall>();
  set.Add(early);
  set.WindAll(absl::UnavailableError("stopped"));
  set.Add(late);
  EXPECT_EQ(early->winds, 1);
  EXPECT_EQ(late->winds, 1);
  set.AbortAll(absl::UnavailableError("stopped"));
  EXPECT_EQ(early->aborts, 1);
  EXPECT_EQ(late->aborts, 1);
}

}  // namespace
}  // namespace isthmus
