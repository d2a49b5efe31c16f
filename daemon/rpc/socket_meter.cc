#include "daemon/rpc/socket_meter.h"

#include <dirent.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace isthmus {
namespace {

constexpr absl::Duration kInterval = absl::Milliseconds(500);
constexpr int64_t kMovedBytes = 1 << 20;

int PortOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  }
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return 0;
}

// False: not a connected TCP socket with that port on that side.
bool ReadCount(int fd, SocketMeter::Side side, int port, TransferCount* count) {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if ((side == SocketMeter::Side::kLocalPort ? getsockname : getpeername)(fd, raw, &length) != 0)
    return false;
  if (PortOf(address) != port) return false;
  tcp_info info = {};
  length = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return false;
  constexpr int kListening = 10;  // TCP_LISTEN, whose header cannot stand beside linux/tcp.h
  if (info.tcpi_state == kListening) return false;
  // Acknowledgements come late; older kernels tell only of those.
  const int64_t sent =
      static_cast<int64_t>(info.tcpi_bytes_sent) - static_cast<int64_t>(info.tcpi_bytes_retrans);
  count->bytes_out = std::max<int64_t>(sent, info.tcpi_bytes_acked);
  count->bytes_in = info.tcpi_bytes_received;
  return true;
}

}  // namespace

SocketMeter::SocketMeter(EventLoop* loop, Side side, int port) : loop_(loop), side_(side), port_(port) {
  Tick();
}

SocketMeter::~SocketMeter() {
  *is_alive_ = false;
  loop_->Cancel(timer_);
}

void SocketMeter::Tick() {
  Sample();
  timer_ = loop_->RunAfter(kInterval, [this, alive = is_alive_] {
    if (*alive) Tick();
  });
}

void SocketMeter::Moved(int64_t bytes) {
  moved_bytes_ += bytes;
  if (moved_bytes_ >= kMovedBytes) Sample();
}

TransferCount SocketMeter::Sample() {
  moved_bytes_ = 0;
  std::map<uint64_t, TransferCount> now;
  if (DIR* folder = opendir("/proc/self/fd")) {
    while (const dirent* entry = readdir(folder)) {
      const int fd = std::atoi(entry->d_name);
      struct stat about = {};
      if (entry->d_name[0] == '.' || fstat(fd, &about) != 0 || !S_ISSOCK(about.st_mode)) continue;
      TransferCount count;
      if (ReadCount(fd, side_, port_, &count)) now[about.st_ino] = count;
    }
    closedir(folder);
  }
  for (const auto& [inode, count] : open_) {
    auto it = now.find(inode);
    // An inode whose count fell is another connection under an old number.
    if (it != now.end() && it->second.bytes_out >= count.bytes_out && it->second.bytes_in >= count.bytes_in) {
      continue;
    }
    closed_.bytes_out += count.bytes_out;
    closed_.bytes_in += count.bytes_in;
  }
  open_ = std::move(now);
  TransferCount sum = closed_;
  for (const auto& [inode, count] : open_) {
    sum.bytes_out += count.bytes_out;
    sum.bytes_in += count.bytes_in;
  }
  return sum;
}

}  // namespace isthmus
