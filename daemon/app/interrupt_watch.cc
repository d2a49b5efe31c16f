#include "daemon/app/interrupt_watch.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>

namespace isthmus {

InterruptWatch::InterruptWatch() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

InterruptWatch::~InterruptWatch() {
  close(signals_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

absl::StatusOr<bool> InterruptWatch::Wait(int fd, absl::Duration timeout) {
  pollfd watched[2] = {{signals_, POLLIN, 0}, {fd, POLLIN, 0}};
  const absl::Duration bounded = std::clamp(timeout, absl::ZeroDuration(), absl::Hours(1));
  if (!is_interrupted_) poll(watched, 2, static_cast<int>(absl::ToInt64Milliseconds(bounded)));
  signalfd_siginfo info;
  if (read(signals_, &info, sizeof(info)) == sizeof(info)) is_interrupted_ = true;
  if (is_interrupted_) return absl::CancelledError("interrupted by a signal");
  return (watched[1].revents & (POLLIN | POLLHUP)) != 0;
}

}  // namespace isthmus
