// Waiting for the end of a daemon: a signal from outside, or the role's own word.
#ifndef ISTHMUS_DAEMON_APP_SHUTDOWN_SIGNAL_H_
#define ISTHMUS_DAEMON_APP_SHUTDOWN_SIGNAL_H_

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

namespace isthmus {

// Made by main before any thread: SIGINT, SIGTERM and SIGUSR1 are then blocked in all of them and taken here.
class ShutdownSignal {
 public:
  ShutdownSignal() {
    sigemptyset(&set_);
    for (int s : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&set_, s);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }

  // Main thread: waits. True for a signal from outside, false when Wake was called.
  bool Wait() {
    int signal = 0;
    sigwait(&set_, &signal);
    return signal != SIGUSR1;
  }

  // Any thread.
  static void Wake() { kill(getpid(), SIGUSR1); }

 private:
  sigset_t set_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_SHUTDOWN_SIGNAL_H_
