#include "daemon/rpc/grpc_harness.h"

#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "daemon/rpc/status_client.h"

namespace isthmus {
namespace {

// Tells the relay where it listens.
class HarnessHub : public GrpcHub {
 public:
  HarnessHub(EventLoop* loop, GrpcHubOptions options, std::atomic<int>* port)
      : GrpcHub(loop, std::move(options)), port_(port) {}
  absl::Status Start(Hub::Listener* listener) override {
    const absl::Status started = GrpcHub::Start(listener);
    if (started.ok()) port_->store(port());
    return started;
  }

 private:
  std::atomic<int>* const port_;
};

// One question to the loop until it says yes; shared with the loop's queue.
struct Question {
  EventLoop* loop = nullptr;
  std::function<bool()> condition;
  absl::Mutex mutex;
  bool is_over ABSL_GUARDED_BY(mutex) = false;
  bool is_true ABSL_GUARDED_BY(mutex) = false;
};

void AskOnLoop(const std::shared_ptr<Question>& question) {
  {
    absl::MutexLock lock(&question->mutex);
    if (question->is_over) return;
    question->is_true = question->condition();
    if (question->is_true) return;
  }
  question->loop->RunAfter(absl::Milliseconds(1), [question] { AskOnLoop(question); });
}

}  // namespace

std::unique_ptr<Hub> GrpcHarness::MakeHub() {
  GrpcHubOptions options = hub_options;
  options.listen = {"127.0.0.1", hub_port_.load()};
  return std::make_unique<HarnessHub>(&loop_, options, &hub_port_);
}

std::unique_ptr<WorkerLink> GrpcHarness::MakeLink(const std::string&) {
  GrpcLinkOptions options = link_options;
  options.coordinator = {"127.0.0.1", relay_.port()};
  return *GrpcLink::Create(&loop_, options);
}

void GrpcHarness::OnLoop(std::function<void()> fn) {
  absl::Notification done;
  loop_.Post([&] {
    fn();
    done.Notify();
  });
  done.WaitForNotification();
}

bool GrpcHarness::Until(std::function<bool()> condition) {
  auto question = std::make_shared<Question>();
  question->loop = &loop_;
  question->condition = std::move(condition);
  loop_.Post([question] { AskOnLoop(question); });
  absl::MutexLock lock(&question->mutex);
  clock_.AwaitUntil(&question->mutex, absl::Condition(&question->is_true), SteadyNow() + absl::Seconds(30));
  question->is_over = true;
  return question->is_true;
}

absl::StatusOr<RunStatus> GrpcHarness::AskStatus(const StatusRequest& request) {
  auto client = StatusClient::Create(&clock_, {"127.0.0.1", relay_.port()}, RpcOptions());
  if (!client.ok()) return client.status();
  return (*client)->Ask(request, absl::Seconds(5));
}

bool GrpcHarness::WatchSees(int64_t round, std::function<void()> publish) {
  auto client = *StatusClient::Create(&clock_, {"127.0.0.1", relay_.port()}, RpcOptions());
  bool is_first = true, was_seen = false;
  client->Watch(
      StatusRequest(),
      [&](const RunStatus& status) {
        if (std::exchange(is_first, false)) loop_.Post(publish);
        was_seen = status.round() == round;
        return !was_seen;
      },
      [](const absl::Status&) { return false; });
  return was_seen;
}

}  // namespace isthmus
