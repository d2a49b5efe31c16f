#include "tests/e2e/spawned.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace isthmus {
namespace {

// Pointers into `texts`, null at the end, as execve wants them.
std::vector<char*> PointersTo(std::vector<std::string>* texts) {
  std::vector<char*> pointers;
  for (std::string& text : *texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Spawned::Spawned(std::vector<std::string> arguments, const std::map<std::string, std::string>& environment,
                 RealClock* clock, absl::Time deadline)
    : clock_(clock), deadline_(deadline) {
  Spawn(arguments, environment);
  if (pid_ > 0) {
    reader_ = std::thread([this] { ReadAll(); });
    return;
  }
  absl::MutexLock lock(&mutex_);
  has_ended_ = true;
  lines_.push_back({true, absl::StrCat(arguments[0], " could not be started")});
}

Spawned::~Spawned() {
  if (pid_ > 0) Kill();
  if (reader_.joinable()) reader_.join();
}

void Spawned::Spawn(const std::vector<std::string>& arguments,
                    const std::map<std::string, std::string>& environment) {
  std::vector<std::string> argument_texts = arguments, variable_texts;
  for (const auto& [name, value] : environment) variable_texts.push_back(absl::StrCat(name, "=", value));
  std::vector<char*> argv = PointersTo(&argument_texts), envp = PointersTo(&variable_texts);
  int out[2] = {-1, -1}, err[2] = {-1, -1};
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return;
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    // Only calls that are safe after a fork of a program with threads.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(126);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

void Spawned::Take(bool is_error, absl::string_view piece) {
  absl::MutexLock lock(&mutex_);
  std::string& partial = partial_[is_error];
  for (char c : piece) {
    if (c != '\n') {
      partial.push_back(c);
      continue;
    }
    lines_.push_back({is_error, std::exchange(partial, "")});
  }
}

void Spawned::ReadAll() {
  pollfd both[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
  int open = 2;
  while (open > 0) {
    if (poll(both, 2, -1) < 0 && errno != EINTR) break;
    for (int i = 0; i < 2; ++i) {
      if (both[i].fd < 0 || both[i].revents == 0) continue;
      char piece[4096];
      const ssize_t n = read(both[i].fd, piece, sizeof(piece));
      if (n > 0) {
        Take(i == 1, absl::string_view(piece, static_cast<size_t>(n)));
      } else if (n == 0 || errno != EINTR) {
        both[i].fd = -1;
        --open;
      }
    }
  }
  close(out_);
  close(err_);
  // The lock is held from the reaping on, so that no signal can reach a stranger who got the same number.
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  absl::MutexLock lock(&mutex_);
  int status = 0;
  waitpid(pid_, &status, 0);
  for (bool is_error : {false, true}) {
    if (!partial_[is_error].empty()) lines_.push_back({is_error, std::exchange(partial_[is_error], "")});
  }
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  has_ended_ = true;
}

void Spawned::Signal(int signal) {
  absl::MutexLock lock(&mutex_);
  if (!has_ended_) kill(pid_, signal);
}

void Spawned::Kill() {
  Signal(SIGKILL);
  if (reader_.joinable()) reader_.join();
}

int Spawned::Wait() {
  absl::MutexLock lock(&mutex_);
  clock_->AwaitUntil(&mutex_, absl::Condition(&has_ended_), deadline_);
  return exit_code_;
}

bool Spawned::has_ended() const {
  absl::MutexLock lock(&mutex_);
  return has_ended_;
}

int Spawned::Find(absl::string_view text, int from) const {
  for (int i = from; i < static_cast<int>(lines_.size()); ++i) {
    if (absl::StrContains(lines_[i].text, text)) return i;
  }
  return -1;
}

int Spawned::AwaitLine(absl::string_view text, int from) {
  absl::MutexLock lock(&mutex_);
  // Evaluated by any thread, any number of times: it must not remember anything.
  const auto is_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return has_ended_ || Find(text, from) >= 0;
  };
  clock_->AwaitUntil(&mutex_, absl::Condition(&is_there), deadline_);
  return Find(text, from);
}

std::string Spawned::line(int index) const {
  absl::MutexLock lock(&mutex_);
  return index >= 0 && index < static_cast<int>(lines_.size()) ? lines_[index].text : "";
}

int Spawned::lines() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(lines_.size());
}

std::string Spawned::Join(bool has_output, bool has_errors) const {
  absl::MutexLock lock(&mutex_);
  std::string all;
  for (const Line& l : lines_) {
    if (l.is_error ? has_errors : has_output) absl::StrAppend(&all, l.text, "\n");
  }
  return all;
}

std::string Spawned::output() const { return Join(true, true); }
std::string Spawned::standard_output() const { return Join(true, false); }
std::string Spawned::standard_error() const { return Join(false, true); }

}  // namespace isthmus
