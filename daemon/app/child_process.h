// A process started by this one: its output in a log file, its end by its id alone.
//
// For benchmarks that need daemons as processes of their own. Not thread-safe.
#ifndef ISTHMUS_DAEMON_APP_CHILD_PROCESS_H_
#define ISTHMUS_DAEMON_APP_CHILD_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace isthmus {

struct ChildOptions {
  std::string program;                   // its path
  std::vector<std::string> arguments;    // without the program's name
  std::vector<std::string> environment;  // NAME=value, before this process's; its ISTHMUS_… are not handed on
  std::string log_path;                  // appended to: standard error, and standard output unless it is read
  bool is_output_read = false;           // standard output comes through output()
};

// Standard input is empty, no signal is blocked, and a signal from the terminal does not reach it.
class ChildProcess {
 public:
  // UNAVAILABLE: it cannot be started, in the system's words.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const ChildOptions& options);
  // Ends it at once (SIGKILL) unless it has ended.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Where its standard output can be read; −1 when that goes to the log.
  int output() const { return output_; }
  // Whether it has ended, by itself or killed.
  bool HasEnded();
  // SIGKILL; returns when it is gone.
  void Kill();

 private:
  ChildProcess(pid_t pid, int output) : pid_(pid), output_(output) {}

  const pid_t pid_;
  const int output_;
  bool has_ended_ = false;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_CHILD_PROCESS_H_
