// A run of real processes on loopback, for one test: a folder of its own, a small text, a run file, a
// coordinator on a free port, workers, and how it all stands.
#ifndef ISTHMUS_TESTS_E2E_RUN_WORLD_H_
#define ISTHMUS_TESTS_E2E_RUN_WORLD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/exchange/url.h"
#include "protos/status.pb.h"
#include "tests/e2e/spawned.h"

namespace isthmus {

// A run file with a tiny model (27 thousand parameters); `more` is appended as it is.
struct RunShape {
  std::string name = "e2e";
  int64_t rounds = 8;
  int64_t steps = 5;  // inner steps to a round
  int64_t sites = 3;  // the first round waits for so many
  std::string model = "vocabulary: 256 width: 32 layers: 2 heads: 2 feed_forward: 64 context: 32";
  std::string rounds_more;  // inside `rounds`
  std::string suspect_after = "seconds: 1";
  std::string more;
};

std::string RunText(const RunShape& shape);

// Text of lower-case words, the same for the same seed.
std::string SampleText(int64_t bytes, uint64_t seed);

// Tokens to train on in a second: ten inner steps, so that a round of five takes half a second.
constexpr int kTenStepsPerSecond = 640;

class RunWorld {
 public:
  using Arguments = std::vector<std::string>;

  // Everything in it has to happen within `patience`.
  explicit RunWorld(absl::Duration patience = absl::Seconds(120));
  // Ends what it started and removes the folder.
  ~RunWorld();

  // A file or folder of the world's folder.
  std::string PathOf(absl::string_view name) const;
  void WriteFile(absl::string_view name, absl::string_view bytes) const;
  std::string ReadFile(absl::string_view name) const;

  // Runs the program; `environment` goes beside what every process gets.
  std::unique_ptr<Spawned> Start(Arguments arguments, std::map<std::string, std::string> environment = {});

  // Writes the run file, and starts a coordinator on it and the folder "state". Waits until it listens;
  // false, with a test failure, when it does not.
  bool StartCoordinator(const RunShape& shape, const Arguments& more = {});
  // The same again on the same directory and port, with the run file that is there.
  bool RestartCoordinator(const Arguments& more = {});
  Spawned& coordinator() { return *coordinator_; }
  // isthmus://HOST:PORT/NAME, and its first part.
  std::string url() const;
  const HostPort& address() const { return address_; }

  // Starts a worker on "text.txt" (written when it is missing). An earlier one of this site is ended.
  Spawned& StartWorker(const std::string& site, const Arguments& more = {});
  Spawned& worker(const std::string& site) { return *workers_.at(site); }

  // One answer. Within the deadline, or an error.
  absl::StatusOr<RunStatus> Ask(bool all_commits = false);
  // Watches, across restarts of the coordinator, until `is_it` holds. Returns that status. When the deadline
  // passes or the coordinator has ended: a test failure that says `what`, how the run stands and what the
  // processes said last.
  RunStatus Await(absl::string_view what, const std::function<bool(const RunStatus&)>& is_it);
  RunStatus AwaitRounds(int64_t committed);
  RunStatus AwaitFinished();
  // Waits for every worker, and expects it to end with 0.
  void ExpectWorkersDone();
  // What every process said, for failures.
  std::string Said() const;

  RealClock* clock() { return &clock_; }
  absl::Time deadline() const { return deadline_; }

 private:
  bool AwaitListening();

  RealClock clock_;
  const absl::Time deadline_;
  std::string folder_;
  std::string run_name_;
  HostPort address_;
  std::unique_ptr<Spawned> coordinator_;
  std::map<std::string, std::unique_ptr<Spawned>> workers_;
};

// The site's line in a status; an empty one when it is not there.
SiteStatus SiteOf(const RunStatus& status, absl::string_view site);

}  // namespace isthmus

#endif  // ISTHMUS_TESTS_E2E_RUN_WORLD_H_
