// The conformance suite on SimTransport, and what holds for it alone.
#include "daemon/base/clock.h"
#include "daemon/base/event_loop.h"
#include "daemon/exchange/sim_transport.h"
#include "daemon/exchange/transport_conformance.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

class SimHarness : public TransportHarness {
 public:
  SimHarness() {
    LinkProfile profile;
    profile.latency = absl::Milliseconds(5);
    profile.up_bytes_per_second = profile.down_bytes_per_second = 20e6;
    network_.SetLinkProfile("alpha", profile);
  }
  std::unique_ptr<Hub> MakeHub() override { return network_.MakeHub(); }
  std::unique_ptr<WorkerLink> MakeLink(const std::string& site) override { return network_.MakeLink(site); }
  void OnLoop(std::function<void()> fn) override { fn(); }
  bool Until(std::function<bool()> condition) override {
    const absl::Time limit = clock_.SteadyNow() + absl::Minutes(5);
    while (!condition()) {
      if (clock_.SteadyNow() > limit || !loop_.RunNext()) return condition();
    }
    return true;
  }
  void BreakUploadOnce(int64_t bytes) override {
    Fault fault;
    fault.kind = FaultKind::kBroken;
    fault.target = FaultTarget::kUpload;
    network_.Inject(fault);
  }
  absl::Time SteadyNow() override { return clock_.SteadyNow(); }
  absl::StatusOr<RunStatus> AskStatus(const StatusRequest& request) override {
    return network_.RequestStatus(request);
  }
  bool WatchSees(int64_t round, std::function<void()> publish) override {
    int64_t seen = 0;
    network_.WatchStatus([&seen](const RunStatus& status) { seen = status.round(); });
    publish();
    return Until([&] { return seen == round; });
  }

 private:
  FakeClock clock_;
  SimLoop loop_{&clock_};
  SimNetwork network_{&loop_};
};

std::unique_ptr<TransportHarness> MakeSimHarness() { return std::make_unique<SimHarness>(); }

INSTANTIATE_TEST_SUITE_P(Sim, TransportConformanceTest, testing::Values(&MakeSimHarness));

}  // namespace
}  // namespace isthmus
