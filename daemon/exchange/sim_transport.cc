#include "daemon/exchange/sim_transport.h"

#include "absl/strings/str_cat.h"
#include "daemon/exchange/sim_hub.h"
#include "daemon/exchange/sim_link.h"

namespace isthmus {

std::unique_ptr<WorkerLink> SimNetwork::MakeLink(const std::string& site) {
  return std::make_unique<SimLink>(core_, site);
}

std::unique_ptr<Hub> SimNetwork::MakeHub(int64_t held_frames_bytes) {
  return std::make_unique<SimHub>(core_, held_frames_bytes);
}

void SimNetwork::KillHub() {
  if (core_->hub() != nullptr) core_->RemoveHub("the coordinator is gone");
}

void SimNetwork::KillLink(const std::string& site) {
  if (SimLinkEnd* link = core_->LinkOf(site)) link->Kill();
}

void SimNetwork::BreakSession(const std::string& site) {
  core_->BreakSession(core_->SessionOf(site),
                      absl::UnavailableError(absl::StrCat("session of site '", site, "' broke")));
}

absl::StatusOr<RunStatus> SimNetwork::RequestStatus(const StatusRequest& request) {
  if (core_->hub() == nullptr) {
    return absl::UnavailableError("nobody answers at the coordinator's address");
  }
  return core_->hub()->AskStatus(request);
}

}  // namespace isthmus
