// A coordinator's answers from a script, for tests of what shows them.
#ifndef ISTHMUS_DAEMON_APP_FAKE_STATUS_WATCH_H_
#define ISTHMUS_DAEMON_APP_FAKE_STATUS_WATCH_H_

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "daemon/app/status_follower.h"
#include "daemon/base/clock.h"

namespace isthmus {

// Plays one stream after the other, each its statuses and then its end, a second of the clock between two;
// with the script over nobody answers any more.
class FakeStatusWatch {
 public:
  struct Stream {
    std::vector<RunStatus> statuses;
    absl::Status end = absl::UnavailableError("nobody answers");
  };

  explicit FakeStatusWatch(std::vector<Stream> streams) : streams_(streams.begin(), streams.end()) {}

  // Refers to this.
  StatusWatch watch() {
    return [this](const StatusRequest& request, const std::function<bool(const RunStatus&)>& seen,
                  const std::function<bool(const absl::Status&)>& lost) {
      while (true) {
        const Stream stream = Next(request);
        for (const RunStatus& status : stream.statuses) {
          if (!seen(status)) return;
        }
        if (!lost(stream.end)) return;
        clock.Advance(absl::Seconds(1));
      }
    };
  }

  FakeClock clock;
  std::vector<StatusRequest> requests;

 private:
  Stream Next(const StatusRequest& request) {
    requests.push_back(request);
    if (streams_.empty()) return {};
    Stream stream = std::move(streams_.front());
    streams_.pop_front();
    return stream;
  }

  std::deque<Stream> streams_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_FAKE_STATUS_WATCH_H_
