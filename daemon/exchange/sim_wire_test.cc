#include "daemon/exchange/sim_wire.h"

#include <memory>
#include <string>

#include "daemon/base/clock.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

class SimWireTest : public testing::Test {
 protected:
  SimWireTest() { wire_->SetRate(absl::Milliseconds(100), 1000); }

  // Notes what happens as "a@0.6 ".
  std::function<void()> Note(const std::string& what) {
    return [this, what] {
      char text[64];
      std::snprintf(text, sizeof(text), "%s@%.1f ", what.c_str(),
                    absl::ToDoubleSeconds(clock_.SteadyNow() - start_));
      log_ += text;
    };
  }
  std::string Run() {
    loop_.RunUntil(start_ + absl::Hours(1));
    return log_;
  }

  FakeClock clock_;
  SimLoop loop_{&clock_};
  const absl::Time start_ = clock_.SteadyNow();
  std::unique_ptr<SimWire> wire_ = std::make_unique<SimWire>(&loop_);
  std::string log_;
};

TEST_F(SimWireTest, BytesTakeTransmissionThenLatencyAndQueueBehindEachOther) {
  wire_->Send(500, Note("sent"), Note("a"));
  wire_->Send(500, nullptr, Note("b"));
  EXPECT_EQ(Run(), "sent@0.5 a@0.6 b@1.1 ");
}

TEST_F(SimWireTest, ACloggedWireHoldsWhatIsOnTheWayAndKeepsItsOrder) {
  wire_->Send(500, nullptr, Note("a"));
  wire_->Clog(absl::Seconds(5));
  wire_->Send(500, nullptr, Note("b"));
  EXPECT_EQ(Run(), "a@5.0 b@5.0 ");
}

TEST_F(SimWireTest, ADelayHoldsUpWhatFollows) {
  wire_->SendDelayed(0, absl::Seconds(2), nullptr, Note("a"));
  wire_->Send(0, nullptr, Note("b"));
  EXPECT_EQ(Run(), "a@2.1 b@2.1 ");
}

TEST_F(SimWireTest, ASlowWireTakesLongerForAWhile) {
  wire_->SlowDown(4, absl::Seconds(1));
  wire_->Send(500, nullptr, Note("a"));
  loop_.RunUntil(start_ + absl::Seconds(10));
  wire_->Send(500, nullptr, Note("b"));
  EXPECT_EQ(Run(), "a@2.4 b@10.6 ");
}

TEST_F(SimWireTest, AWireThatDiesDeliversNothing) {
  wire_->Send(500, Note("sent"), Note("a"));
  wire_.reset();
  EXPECT_EQ(Run(), "");
}

}  // namespace
}  // namespace isthmus
