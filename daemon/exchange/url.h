// Addresses as people write them: isthmus://host:port/run and host:port.
#ifndef ISTHMUS_DAEMON_EXCHANGE_URL_H_
#define ISTHMUS_DAEMON_EXCHANGE_URL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace isthmus {

struct HostPort {
  std::string host;  // name, IPv4 or IPv6 address, without brackets
  int port = 0;      // 0: any, where that is allowed

  // "host:port", with brackets around an IPv6 address.
  std::string ToString() const;
  // The host is this machine by its loopback name or address; other names are not looked up.
  bool IsLoopback() const;
};

// INVALID_ARGUMENT says what is wrong where. Port 0 passes only if `may_be_any`.
absl::StatusOr<HostPort> ParseHostPort(absl::string_view text, bool may_be_any);

struct RunUrl {
  HostPort coordinator;
  std::string run;
};

// INVALID_ARGUMENT says what is wrong where.
absl::StatusOr<RunUrl> ParseRunUrl(absl::string_view text);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_EXCHANGE_URL_H_
