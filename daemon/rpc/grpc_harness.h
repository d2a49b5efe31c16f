// A gRPC hub and links in one process on a loop of its own, with a relay between them: for tests.
#ifndef ISTHMUS_DAEMON_RPC_GRPC_HARNESS_H_
#define ISTHMUS_DAEMON_RPC_GRPC_HARNESS_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "daemon/base/clock.h"
#include "daemon/base/event_loop.h"
#include "daemon/exchange/transport_harness.h"
#include "daemon/rpc/grpc_hub.h"
#include "daemon/rpc/grpc_link.h"
#include "daemon/rpc/test_relay.h"

namespace isthmus {

class GrpcHarness : public TransportHarness {
 public:
  GrpcHarness() : relay_([this] { return hub_port_.load(); }) {}

  std::unique_ptr<Hub> MakeHub() override;
  std::unique_ptr<WorkerLink> MakeLink(const std::string& site) override;
  void OnLoop(std::function<void()> fn) override;
  bool Until(std::function<bool()> condition) override;
  void BreakUploadOnce(int64_t bytes) override { relay_.CutOnceAfter(bytes / 2); }
  absl::Time SteadyNow() override { return clock_.SteadyNow(); }
  absl::StatusOr<RunStatus> AskStatus(const StatusRequest& request) override;
  bool WatchSees(int64_t round, std::function<void()> publish) override;

  EventLoop* loop() { return &loop_; }
  TestRelay* relay() { return &relay_; }
  // What the next MakeHub and MakeLink take; addresses are the harness's own.
  GrpcHubOptions hub_options;
  GrpcLinkOptions link_options;

 private:
  RealClock clock_;
  std::atomic<int> hub_port_{0};  // 0: no hub yet
  TestRelay relay_;
  ThreadLoop loop_{&clock_};
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_RPC_GRPC_HARNESS_H_
