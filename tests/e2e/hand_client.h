// A worker made by hand: speaks the protocol message by message, so that a test may say what no worker would.
#ifndef ISTHMUS_TESTS_E2E_HAND_CLIENT_H_
#define ISTHMUS_TESTS_E2E_HAND_CLIENT_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/base/event_loop.h"
#include "daemon/rpc/grpc_link.h"

namespace isthmus {

// Used from the test's thread; what comes is kept until it is asked for. Every wait ends at the deadline.
class HandClient : public WorkerLink::Listener {
 public:
  // `clock` must outlive the client; `deadline` is steady time.
  HandClient(RealClock* clock, const HostPort& coordinator, absl::Time deadline);
  ~HandClient() override;

  // Opens a session; OK once it is open.
  absl::Status Dial();
  void Send(const WorkerMessage& message);
  // The next message of this kind; others are dropped. An empty one when the session ends or the deadline
  // passes first.
  CoordinatorMessage Await(CoordinatorMessage::BodyCase kind);
  // Whether the session ended before the deadline.
  bool AwaitClosed();
  absl::Status Upload(const ContributionHeader& header, const std::string& frame);
  absl::StatusOr<std::string> Fetch(const std::string& run_id, const Life& life, const BlobName& name);

  // A Hello that is right in everything, for a test to spoil.
  static WorkerMessage GoodHello(const std::string& site);
  // Says Hello, enlists and stands on the newest anchor, as the coordinator believes. Returns the Welcome; an
  // empty one when it did not come to that.
  Welcome Join(const std::string& site, const std::string& data_digest, int64_t data_sequences);

 private:
  void SessionOpened() override;
  void MessageReceived(CoordinatorMessage message) override;
  void SessionClosed(absl::Status why) override;
  // Runs `fn` on the loop and waits for it.
  void OnLoop(const std::function<void()>& fn);

  RealClock* const clock_;
  const absl::Time deadline_;
  ThreadLoop loop_;
  std::unique_ptr<GrpcLink> link_;

  absl::Mutex mutex_;
  std::deque<CoordinatorMessage> received_ ABSL_GUARDED_BY(mutex_);
  bool is_open_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status why_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace isthmus

#endif  // ISTHMUS_TESTS_E2E_HAND_CLIENT_H_
