#include "daemon/app/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

extern char** environ;

namespace isthmus {
namespace {

std::vector<char*> Pointers(std::vector<std::string>* words) {
  std::vector<char*> pointers;
  for (std::string& word : *words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> EnvironmentOf(const ChildOptions& options) {
  std::vector<std::string> all = options.environment;
  for (char** at = environ; *at != nullptr; ++at) {
    // Our own flags given as variables are not the child's.
    if (!absl::StartsWith(*at, "ISTHMUS_")) all.emplace_back(*at);
  }
  return all;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const ChildOptions& options) {
  int ends[2] = {-1, -1};
  if (options.is_output_read && pipe2(ends, O_CLOEXEC) != 0) {
    return absl::UnavailableError(absl::StrCat("no pipe for ", options.program, ": ", std::strerror(errno)));
  }
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  const auto cleanup = absl::MakeCleanup([&] {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    if (ends[1] >= 0) close(ends[1]);
  });
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, options.log_path.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&files, options.is_output_read ? ends[1] : STDERR_FILENO, STDOUT_FILENO);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);

  std::vector<std::string> words = options.arguments, environment = EnvironmentOf(options);
  words.insert(words.begin(), options.program);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, options.program.c_str(), &files, &attributes, Pointers(&words).data(),
                                Pointers(&environment).data());
  if (error != 0) {
    if (ends[0] >= 0) close(ends[0]);
    return absl::UnavailableError(
        absl::StrCat(options.program, " cannot be started: ", std::strerror(error)));
  }
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid, ends[0]));
}

ChildProcess::~ChildProcess() {
  Kill();
  if (output_ >= 0) close(output_);
}

bool ChildProcess::HasEnded() {
  if (!has_ended_) has_ended_ = waitpid(pid_, nullptr, WNOHANG) == pid_;
  return has_ended_;
}

void ChildProcess::Kill() {
  if (HasEnded()) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  has_ended_ = true;
}

}  // namespace isthmus
