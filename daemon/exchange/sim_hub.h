// The coordinator's side of SimTransport. Made by SimNetwork::MakeHub; one per life of a coordinator.
#ifndef ISTHMUS_DAEMON_EXCHANGE_SIM_HUB_H_
#define ISTHMUS_DAEMON_EXCHANGE_SIM_HUB_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "daemon/exchange/partial_frames.h"
#include "daemon/exchange/sim_core.h"
#include "daemon/exchange/transport.h"

namespace isthmus {

// Destruction is a kill: the listener hears nothing more, workers find their sessions broken.
class SimHub : public Hub, public SimHubEnd {
 public:
  // `core` is shared by the network and all its links and hubs, in whatever order they die.
  SimHub(std::shared_ptr<SimCore> core, int64_t held_frames_bytes);
  ~SimHub() override;

  absl::Status Start(Hub::Listener* listener) override;
  void Send(SessionId session, const CoordinatorMessage& message) override;
  void CloseSession(SessionId session) override;
  void PublishStatus(const RunStatus& status) override;
  TransferCount transferred() const override { return count_; }
  void Stop() override;

  void Accept(SessionId session, LinkId link, const std::string& site) override;
  void Deliver(SessionId session, const WorkerMessage& message) override;
  void SessionEnded(SessionId session, const absl::Status& why) override;
  absl::StatusOr<PartialFrames::Offered> OfferUpload(const ContributionHeader& header) override;
  absl::Status TakePiece(const ContributionHeader& header, int64_t offset, const std::string& piece) override;
  void ReleaseUpload(const ContributionHeader& header, int64_t attempt) override {
    frames_.Release(header, attempt);
  }
  absl::Status FinishUpload(const ContributionHeader& header, SharedBytes undetected) override;
  absl::StatusOr<std::shared_ptr<const BlobSource>> OpenBlob(const FetchRequest& request) override;
  RunStatus AskStatus(const StatusRequest& request) override;

 private:
  struct Session {
    LinkId link = 0;
    std::string site;
    bool is_closing = false;
  };
  bool is_running() const { return listener_ != nullptr && core_->hub() == this; }

  const std::shared_ptr<SimCore> core_;
  PartialFrames frames_;
  Hub::Listener* listener_ = nullptr;
  TransferCount count_;
  std::map<SessionId, Session> sessions_;
  // Shared with callbacks in the loop's queue, which may run after the hub is gone.
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_EXCHANGE_SIM_HUB_H_
