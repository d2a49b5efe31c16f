// A program started for a test: its lines as they come, its exit code, and its certain end.
//
// Nothing here sleeps: lines and the end are waited for on a condition, until the test's one deadline.
#ifndef ISTHMUS_TESTS_E2E_SPAWNED_H_
#define ISTHMUS_TESTS_E2E_SPAWNED_H_

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"

namespace isthmus {

// Used from one thread, the one that started it: the kernel kills the process when that thread ends.
class Spawned {
 public:
  // Runs `arguments[0]` with `environment` only. `clock` must outlive the process; `deadline` is steady time
  // and bounds every wait.
  Spawned(std::vector<std::string> arguments, const std::map<std::string, std::string>& environment,
          RealClock* clock, absl::Time deadline);
  // Kills what still runs, and reaps it.
  ~Spawned();
  Spawned(const Spawned&) = delete;
  Spawned& operator=(const Spawned&) = delete;

  // Nothing when it has ended.
  void Signal(int signal);
  // SIGKILL, and waits for the end.
  void Kill();
  // Its exit code once it has ended; 128 + n when signal n ended it; −1 when the deadline passed first.
  int Wait();
  bool has_ended() const;

  // Waits for a line with `text` in it, on either output, from line `from` on; returns where it is, or −1
  // when the process ended or the deadline passed first.
  int AwaitLine(absl::string_view text, int from = 0);
  // The line there; how many there are.
  std::string line(int index) const;
  int lines() const;
  // All lines so far, each output's in its order; for messages.
  std::string output() const;
  // Lines of standard output, or of standard error, only.
  std::string standard_output() const;
  std::string standard_error() const;

 private:
  struct Line {
    bool is_error = false;
    std::string text;
  };
  void Spawn(const std::vector<std::string>& arguments,
             const std::map<std::string, std::string>& environment);
  void ReadAll();
  void Take(bool is_error, absl::string_view piece);
  int Find(absl::string_view text, int from) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Join(bool has_output, bool has_errors) const;

  RealClock* const clock_;
  const absl::Time deadline_;
  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  std::thread reader_;

  mutable absl::Mutex mutex_;
  std::vector<Line> lines_ ABSL_GUARDED_BY(mutex_);
  std::string partial_[2] ABSL_GUARDED_BY(mutex_);
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  int exit_code_ ABSL_GUARDED_BY(mutex_) = -1;
};

}  // namespace isthmus

#endif  // ISTHMUS_TESTS_E2E_SPAWNED_H_
