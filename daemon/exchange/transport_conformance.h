// What any Transport must do, run on the fake and on the real one alike.
//
// A test binary defines a harness, instantiates TransportConformanceTest with it and links this library:
//   INSTANTIATE_TEST_SUITE_P(Sim, TransportConformanceTest, testing::Values(&MakeSimHarness));
#ifndef ISTHMUS_DAEMON_EXCHANGE_TRANSPORT_CONFORMANCE_H_
#define ISTHMUS_DAEMON_EXCHANGE_TRANSPORT_CONFORMANCE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/exchange/transport.h"
#include "gtest/gtest.h"

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

using HarnessFactory = std::unique_ptr<TransportHarness> (*)();

class TransportConformanceTest : public testing::TestWithParam<HarnessFactory> {
 protected:
  void SetUp() override;
  void TearDown() override;

  // A started hub; a link of site "alpha"; a session between them.
  void StartHub();
  void MakeLink();
  void OpenSession();
  void Dial(absl::Duration patience = absl::Seconds(5));
  void SendHeartbeat(int64_t token);
  // Uploads and waits for the outcome.
  absl::Status Upload(const ContributionHeader& header, const std::string& frame,
                      absl::Duration patience = absl::Seconds(60));
  absl::StatusOr<std::string> Fetch(int64_t round, absl::Duration patience = absl::Seconds(60));
  bool Until(std::function<bool()> condition) { return harness_->Until(std::move(condition)); }

  std::unique_ptr<TransportHarness> harness_;
  RecordingWorker worker_;
  RecordingCoordinator coordinator_;
  std::unique_ptr<Hub> hub_;
  std::unique_ptr<WorkerLink> link_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_EXCHANGE_TRANSPORT_CONFORMANCE_H_
