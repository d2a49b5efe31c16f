// The worker's side of SimTransport. Made by SimNetwork::MakeLink; one per life of a worker.
#ifndef ISTHMUS_DAEMON_EXCHANGE_SIM_LINK_H_
#define ISTHMUS_DAEMON_EXCHANGE_SIM_LINK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "daemon/exchange/sim_core.h"
#include "daemon/exchange/sim_transfer.h"
#include "daemon/exchange/transport.h"

namespace isthmus {

// Destruction is a kill: no callback runs any more, the hub finds the session broken.
class SimLink : public WorkerLink, public SimLinkEnd {
 public:
  // `core` is shared by the network and all its links and hubs, in whatever order they die.
  SimLink(std::shared_ptr<SimCore> core, std::string site);
  ~SimLink() override;

  void Dial(WorkerLink::Listener* listener, absl::Time deadline) override;
  void Send(const WorkerMessage& message) override;
  void Upload(const ContributionHeader& header, SharedBytes frame, absl::Time deadline,
              std::function<void(absl::Status)> done) override;
  void Fetch(const std::string& run_id, const Life& life, const BlobName& name, absl::Time deadline,
             std::function<void(absl::StatusOr<std::string>)> done) override;
  void Close() override;
  TransferCount transferred() const override { return count_; }

  const std::string& site() const override { return site_; }
  void Deliver(SessionId session, const CoordinatorMessage& message) override;
  void SessionEnded(SessionId session, const absl::Status& why) override;
  void Kill() override;

 private:
  enum class State { kIdle, kDialling, kOpen };
  void DialArrived(int64_t dial);
  void DialAnswered(int64_t dial, SessionId session);
  void End(const absl::Status& why);

  const std::shared_ptr<SimCore> core_;
  const std::string site_;
  LinkId id_ = 0;
  State state_ = State::kIdle;
  WorkerLink::Listener* listener_ = nullptr;
  SessionId session_ = 0;
  int64_t dial_ = 0;  // counts dials, so that an answer to an older one is known for it
  TimerId dial_timer_ = 0;
  TransferCount count_;
  int64_t next_transfer_ = 1;
  std::map<int64_t, std::unique_ptr<SimUpload>> uploads_;
  std::map<int64_t, std::unique_ptr<SimFetch>> fetches_;
  // Shared with callbacks in the loop's queue, which may run after the link is gone.
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_EXCHANGE_SIM_LINK_H_
