// Listeners that remember, blobs in memory and made-up bytes: for tests of transports.
#ifndef ISTHMUS_DAEMON_EXCHANGE_TRANSPORT_RECORDING_H_
#define ISTHMUS_DAEMON_EXCHANGE_TRANSPORT_RECORDING_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/exchange/transport.h"

namespace isthmus {

// Remembers all that a link tells.
class RecordingWorker : public WorkerLink::Listener {
 public:
  void SessionOpened() override { ++opened; }
  void MessageReceived(CoordinatorMessage message) override { messages.push_back(std::move(message)); }
  void SessionClosed(absl::Status why) override { closed.push_back(std::move(why)); }

  int opened = 0;
  std::vector<CoordinatorMessage> messages;
  std::vector<absl::Status> closed;
};

// A blob that is just a string.
class StringBlob : public BlobSource {
 public:
  explicit StringBlob(std::string bytes) : bytes_(std::move(bytes)) {}
  int64_t size() const override { return bytes_.size(); }
  absl::StatusOr<std::string> Read(int64_t offset, int64_t bytes) const override {
    return bytes_.substr(offset, bytes);
  }

 private:
  const std::string bytes_;
};

// Remembers all that a hub tells; answers from what a test put here.
class RecordingCoordinator : public Hub::Listener {
 public:
  void SessionOpened(SessionId session) override { sessions.push_back(session); }
  void MessageReceived(SessionId session, WorkerMessage message) override {
    messages.emplace_back(session, std::move(message));
  }
  void SessionClosed(SessionId session, absl::Status why) override {
    closed.emplace_back(session, std::move(why));
  }
  absl::Status UploadOffered(const ContributionHeader& header) override {
    ++offers;
    return offer_answer;
  }
  void UploadReceived(const ContributionHeader& header, SharedBytes frame) override {
    frames.emplace_back(header, std::move(frame));
  }
  absl::StatusOr<std::shared_ptr<const BlobSource>> FetchRequested(const FetchRequest& request) override {
    fetches.push_back(request);
    auto it = blobs.find(request.round());
    if (it == blobs.end()) {
      return absl::NotFoundError("round " + std::to_string(request.round()) + " was pruned");
    }
    return it->second;
  }
  RunStatus StatusRequested(const StatusRequest& request) override { return status; }

  std::vector<SessionId> sessions;
  std::vector<std::pair<SessionId, WorkerMessage>> messages;
  std::vector<std::pair<SessionId, absl::Status>> closed;
  int offers = 0;
  absl::Status offer_answer;
  std::vector<std::pair<ContributionHeader, SharedBytes>> frames;
  std::vector<FetchRequest> fetches;
  std::map<int64_t, std::shared_ptr<const BlobSource>> blobs;  // by round
  RunStatus status;
};

// `bytes` that do not compress or repeat, the same for the same seed.
std::string MakeBytes(int64_t bytes, uint64_t seed);

// A header that fits the frame.
ContributionHeader HeaderOf(const std::string& frame, const std::string& site, int64_t round);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_EXCHANGE_TRANSPORT_RECORDING_H_
