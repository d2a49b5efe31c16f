// A coordinator and its workers as processes on loopback, to be watched and killed by a benchmark.
//
// Blocking, for a command's main thread; not thread-safe. Every wait ends with CANCELLED when a signal came,
// and the destructor ends every process by its id.
#ifndef ISTHMUS_DAEMON_APP_BENCH_FLEET_H_
#define ISTHMUS_DAEMON_APP_BENCH_FLEET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/app/child_process.h"
#include "daemon/app/interrupt_watch.h"
#include "daemon/base/clock.h"
#include "daemon/rpc/status_client.h"
#include "protos/run.pb.h"
#include "protos/status.pb.h"

namespace isthmus {

// A folder of its own below the one for temporary files; gone, with all in it, when this is.
class TemporaryFolder {
 public:
  // UNAVAILABLE: it cannot be made.
  static absl::StatusOr<std::unique_ptr<TemporaryFolder>> Make();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}

  const std::string path_;
};

// UNAVAILABLE: it cannot be written, whole.
absl::Status WriteWholeFile(const std::string& path, absl::string_view text);

struct FleetOptions {
  std::string program;  // the isthmus executable
  std::string data;
  RunFile run;  // its name is also that of the fleet's folder
  int64_t sites = 3;
  int64_t upload_bytes_per_second = 0;           // of each site; 0: no limit
  absl::Duration patience = absl::Seconds(120);  // while no round is committed
};

// One run's processes.
class BenchFleet {
 public:
  // `folder` is where the fleet's own is made. Clock and watch must outlive the fleet.
  BenchFleet(FleetOptions options, const std::string& folder, Clock* clock, InterruptWatch* watch);

  // Coordinator and all sites. Errors name the process and tell its last words.
  absl::Status Start();
  // The coordinator, also again after a kill: on the same state and port. Returns once it listens.
  absl::Status StartCoordinator();
  absl::Status StartSite(int64_t index);
  // SIGKILL; return when the process is gone.
  void KillCoordinator() { coordinator_.reset(); }
  void KillSite(int64_t index) { sites_[index].reset(); }

  static std::string NameOf(int64_t index);

  // Asks until `is_enough` says so. DEADLINE_EXCEEDED: no round was committed within the patience, with
  // `what` and what the run was waiting for; INTERNAL: a process that should live has ended; CANCELLED.
  absl::StatusOr<RunStatus> Await(const std::string& what,
                                  const std::function<bool(const RunStatus&)>& is_enough);
  // The status now; errors as StatusClient::Ask.
  absl::StatusOr<RunStatus> Ask(bool all_commits);
  // CANCELLED or OK.
  absl::Status Pause(absl::Duration length);

 private:
  absl::StatusOr<std::unique_ptr<ChildProcess>> Launch(std::vector<std::string> arguments,
                                                       const std::string& name, bool is_output_read);
  absl::Status AwaitListening();
  absl::Status CheckAlive(const std::string& name, ChildProcess* process) const;
  absl::Status CheckAllAlive() const;
  std::string LogPath(const std::string& name) const;

  const FleetOptions options_;
  const std::string folder_;
  Clock* const clock_;
  InterruptWatch* const watch_;
  std::string address_;  // HOST:PORT, once known
  std::unique_ptr<StatusClient> client_;
  std::unique_ptr<ChildProcess> coordinator_;  // null while killed
  std::vector<std::unique_ptr<ChildProcess>> sites_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_BENCH_FLEET_H_
