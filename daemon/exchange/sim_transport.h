// A simulated network: one coordinator's address and any number of sites, on one loop, with faults by name.
//
//   FakeClock clock;  SimLoop loop(&clock);  SimNetwork network(&loop);
//   auto hub = network.MakeHub();            // one per life of the coordinator
//   auto link = network.MakeLink("alpha");   // one per life of a worker
//   network.SetLinkProfile("alpha", {absl::Milliseconds(40), 1e6, 5e6});
//   Fault fault;  fault.kind = FaultKind::kBroken;  fault.target = FaultTarget::kUpload;
//   network.Inject(fault);
//
// Same calls, same faults, same seeds: same run, to the byte. Network, links and hubs may die in any order,
// also with callbacks queued. Not thread-safe.
#ifndef ISTHMUS_DAEMON_EXCHANGE_SIM_TRANSPORT_H_
#define ISTHMUS_DAEMON_EXCHANGE_SIM_TRANSPORT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/event_loop.h"
#include "daemon/exchange/fault_plan.h"
#include "daemon/exchange/sim_core.h"
#include "daemon/exchange/transport.h"

namespace isthmus {

class SimNetwork {
 public:
  // `loop` must outlive the network and all it makes.
  explicit SimNetwork(EventLoop* loop) : core_(std::make_shared<SimCore>(loop)) {}

  // A worker's link; destroy it to kill the worker's process. The same site may have another afterwards.
  std::unique_ptr<WorkerLink> MakeLink(const std::string& site);

  // A coordinator's hub; destroy it to kill the process. Its Start is UNAVAILABLE while another is running.
  // It holds at most `held_frames_bytes` of frames that are on their way.
  std::unique_ptr<Hub> MakeHub(int64_t held_frames_bytes = int64_t{1} << 40);

  // For what is sent from now on.
  void SetLinkProfile(const std::string& site, const LinkProfile& profile) {
    core_->SetProfile(site, profile);
  }

  // Adds a fault to the plan; strikes at the coming opportunities until its budget is used up.
  void Inject(const Fault& fault) { core_->plan().Add(fault); }
  void ClearFaults() { core_->plan().Clear(); }
  int64_t struck(FaultKind kind) const { return core_->plan().struck(kind); }

  // At once: the running hub is cut off as by SIGKILL, its object stays and does nothing. Same for a site's
  // link.
  void KillHub();
  void KillLink(const std::string& site);

  // At once: nothing passes this way for `length`, on either connection; nobody is told.
  void Clog(const std::string& site, FaultSide side, absl::Duration length) {
    core_->Clog(site, side, length);
  }

  // At once: the site's session breaks; transfers go on.
  void BreakSession(const std::string& site);

  // What people's tools ask. UNAVAILABLE when no hub runs. A watcher hears every status published from now
  // on.
  absl::StatusOr<RunStatus> RequestStatus(const StatusRequest& request);
  void WatchStatus(std::function<void(const RunStatus&)> watcher) { core_->WatchStatus(std::move(watcher)); }

  // Bytes over a site's wires so far, all lives together.
  const SiteTraffic& traffic(const std::string& site) { return core_->site(site).traffic; }

 private:
  // Shared with the links and hubs made here, in whatever order they die.
  const std::shared_ptr<SimCore> core_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_EXCHANGE_SIM_TRANSPORT_H_
