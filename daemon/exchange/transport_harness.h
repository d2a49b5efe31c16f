// What a transport brings along to be put through the conformance suite.
#ifndef ISTHMUS_DAEMON_EXCHANGE_TRANSPORT_HARNESS_H_
#define ISTHMUS_DAEMON_EXCHANGE_TRANSPORT_HARNESS_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/exchange/transport.h"

namespace isthmus {

class TransportHarness {
 public:
  virtual ~TransportHarness() = default;
  // On the loop: a hub for the harness's one address (a later one takes the place of one that is gone).
  virtual std::unique_ptr<Hub> MakeHub() = 0;
  // On the loop: a link that dials that address.
  virtual std::unique_ptr<WorkerLink> MakeLink(const std::string& site) = 0;
  // Runs `fn` on the loop and waits for it.
  virtual void OnLoop(std::function<void()> fn) = 0;
  // Lets time and messages pass until `condition`, asked on the loop, holds. False when it does not within
  // a generous limit.
  virtual bool Until(std::function<bool()> condition) = 0;
  // On the loop: the coming upload's data connection breaks once, about half way through `bytes`.
  virtual void BreakUploadOnce(int64_t bytes) = 0;
  virtual absl::Time SteadyNow() = 0;
  // Anywhere but on the loop: one answer; and whether a published status with this round reaches a watcher
  // when `publish` is run on the loop.
  virtual absl::StatusOr<RunStatus> AskStatus(const StatusRequest& request) = 0;
  virtual bool WatchSees(int64_t round, std::function<void()> publish) = 0;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_EXCHANGE_TRANSPORT_HARNESS_H_
