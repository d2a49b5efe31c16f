#include "daemon/rpc/test_relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace isthmus {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// Takes the limit if it is passed: whoever swaps it out acts on it.
bool Strikes(std::atomic<int64_t>* limit, int64_t bytes) {
  int64_t at = limit->load();
  return at >= 0 && bytes > at && limit->compare_exchange_strong(at, -1);
}

}  // namespace

TestRelay::TestRelay(std::function<int()> target_port) : target_port_(std::move(target_port)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t length = sizeof(address);
  bind(listener_, reinterpret_cast<sockaddr*>(&address), length);
  listen(listener_, 16);
  getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
  port_ = ntohs(address.sin_port);
  accepting_ = std::thread([this] { Accept(); });
}

TestRelay::~TestRelay() {
  {
    absl::MutexLock lock(&mutex_);
    is_stopped_ = true;
  }
  shutdown(listener_, SHUT_RDWR);
  accepting_.join();
  CutAll();
  std::vector<std::thread> pumps;
  {
    absl::MutexLock lock(&mutex_);
    pumps.swap(pumps_);
  }
  for (std::thread& pump : pumps) pump.join();
  absl::MutexLock lock(&mutex_);
  for (int fd : sockets_) close(fd);
  close(listener_);
}

void TestRelay::CutAll() {
  absl::MutexLock lock(&mutex_);
  for (int fd : sockets_) shutdown(fd, SHUT_RDWR);
}

void TestRelay::Accept() {
  while (true) {
    const int near = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (near < 0) return;
    const int far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(target_port_());
    absl::MutexLock lock(&mutex_);
    sockets_.push_back(near);
    sockets_.push_back(far);
    if (is_stopped_ || address.sin_port == 0 ||
        connect(far, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      shutdown(near, SHUT_RDWR);
      continue;
    }
    pumps_.emplace_back([this, near, far] { Pump(near, far, true); });
    pumps_.emplace_back([this, near, far] { Pump(far, near, false); });
  }
}

void TestRelay::Pump(int from, int to, bool is_up) {
  std::vector<char> buffer(65536);
  int64_t passed = 0;
  while (true) {
    const ssize_t got = recv(from, buffer.data(), buffer.size(), 0);
    if (got <= 0) break;
    passed += got;
    if (is_up && Strikes(&cut_after_, passed)) break;
    if (is_up && Strikes(&flip_after_, passed)) buffer[got - 1] ^= 0x10;
    if (is_frozen_) continue;
    ssize_t sent = 0;
    while (sent < got) {
      const ssize_t n = send(to, buffer.data() + sent, got - sent, MSG_NOSIGNAL);
      if (n <= 0) break;
      sent += n;
    }
    if (sent < got) break;
  }
  shutdown(from, SHUT_RDWR);
  shutdown(to, SHUT_RDWR);
}

}  // namespace isthmus
