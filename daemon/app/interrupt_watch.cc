#include "daemon/app/interrupt_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace isthmus {
namespace {

// Readable once a signal came. A handler has nothing else to reach.
int interrupted_fd = -1;

void MarkInterrupted(int) {
  const int before = errno;
  const uint64_t one = 1;
  // A counter that is full has been marked often enough.
  if (write(interrupted_fd, &one, sizeof(one)) < 0) errno = before;
}

}  // namespace

InterruptWatch::InterruptWatch() {
  interrupted_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction action = {};
  action.sa_handler = MarkInterrupted;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &interrupt_before_);
  sigaction(SIGTERM, &action, &terminate_before_);
}

InterruptWatch::~InterruptWatch() {
  sigaction(SIGINT, &interrupt_before_, nullptr);
  sigaction(SIGTERM, &terminate_before_, nullptr);
  close(interrupted_fd);
  interrupted_fd = -1;
}

absl::StatusOr<bool> InterruptWatch::Wait(int fd, absl::Duration timeout) {
  // Never read, so that it stays readable.
  pollfd watched[2] = {{interrupted_fd, POLLIN, 0}, {fd, POLLIN, 0}};
  const absl::Duration bounded = std::clamp(timeout, absl::ZeroDuration(), absl::Hours(1));
  // A signal cuts the first one short.
  if (poll(watched, 2, static_cast<int>(absl::ToInt64Milliseconds(bounded))) < 0) poll(watched, 2, 0);
  if (watched[0].revents != 0) return absl::CancelledError("interrupted by a signal");
  return (watched[1].revents & (POLLIN | POLLHUP)) != 0;
}

}  // namespace isthmus
