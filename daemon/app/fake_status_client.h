// A coordinator's answers from a script, for tests of what shows them.
#ifndef ISTHMUS_DAEMON_APP_FAKE_STATUS_CLIENT_H_
#define ISTHMUS_DAEMON_APP_FAKE_STATUS_CLIENT_H_

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "daemon/base/clock.h"
#include "daemon/exchange/status_client.h"

namespace isthmus {

// Each Watch plays the next stream: its statuses, then its end. Each Get gives the next stream's first
// status, or its end. `before_each` runs at the start of either (to move a fake clock). With the script over:
// UNAVAILABLE.
class FakeStatusClient : public StatusClient {
 public:
  struct Stream {
    std::vector<RunStatus> statuses;
    absl::Status end = absl::UnavailableError("nobody answers");
  };

  explicit FakeStatusClient(std::vector<Stream> streams) : streams_(streams.begin(), streams.end()) {}

  absl::StatusOr<RunStatus> Get(const StatusRequest& request, absl::Time deadline) override {
    const Stream stream = Next(request);
    if (stream.statuses.empty()) return stream.end;
    return stream.statuses.front();
  }

  absl::Status Watch(const StatusRequest& request, absl::Time deadline,
                     const std::function<bool(const RunStatus&)>& seen) override {
    const Stream stream = Next(request);
    for (const RunStatus& status : stream.statuses) {
      if (!seen(status)) return absl::OkStatus();
    }
    return stream.end;
  }

  std::function<void()> before_each = [] {};
  std::vector<StatusRequest> requests;

 private:
  Stream Next(const StatusRequest& request) {
    before_each();
    requests.push_back(request);
    if (streams_.empty()) return {};
    Stream stream = std::move(streams_.front());
    streams_.pop_front();
    return stream;
  }

  std::deque<Stream> streams_;
};

// A clock whose waits end at once, moved to where they would have ended.
class ImpatientClock : public Clock {
 public:
  absl::Time Now() const override { return now_; }
  absl::Time SteadyNow() const override { return now_; }
  bool AwaitUntil(absl::Mutex*, const absl::Condition& condition, absl::Time deadline) override {
    now_ = std::max(now_, deadline);
    return condition.Eval();
  }

 private:
  absl::Time now_ = absl::UnixEpoch();
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_FAKE_STATUS_CLIENT_H_
