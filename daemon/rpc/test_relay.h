// A TCP relay on loopback for tests: passes bytes on to a hub, and cuts or damages them when told.
#ifndef ISTHMUS_DAEMON_RPC_TEST_RELAY_H_
#define ISTHMUS_DAEMON_RPC_TEST_RELAY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace isthmus {

// Thread-safe.
class TestRelay {
 public:
  // `target_port` is asked at each connection; 0: nobody is there, the connection is dropped.
  explicit TestRelay(std::function<int()> target_port);
  ~TestRelay();

  int port() const { return port_; }

  // Once: the connection on which so many bytes went up is cut, both ways.
  void CutOnceAfter(int64_t bytes) { cut_after_ = bytes; }
  // Once: on the connection on which so many bytes went up, one bit of the next is turned.
  void FlipOnceAfter(int64_t bytes) { flip_after_ = bytes; }
  // From now on nothing passes, and nobody is told.
  void Freeze() { is_frozen_ = true; }
  // Cuts all connections there are.
  void CutAll();

 private:
  void Accept();
  void Pump(int from, int to, bool is_up);

  const std::function<int()> target_port_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> is_frozen_{false};
  std::atomic<int64_t> cut_after_{-1}, flip_after_{-1};
  std::thread accepting_;
  absl::Mutex mutex_;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<int> sockets_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> pumps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_RPC_TEST_RELAY_H_
