// Where a run is found: isthmus://HOST:PORT/RUN. Pure.
#ifndef ISTHMUS_DAEMON_APP_RUN_URL_H_
#define ISTHMUS_DAEMON_APP_RUN_URL_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace isthmus {

// The port when a URL or address names none.
inline constexpr int kDefaultPort = 7700;

struct HostPort {
  std::string host;  // a name, or an address without brackets
  int port = kDefaultPort;

  // "host:port", an IPv6 address in brackets.
  std::string ToString() const;
};

struct RunUrl {
  HostPort at;
  std::string run_name;
};

// "host", "host:port", "[::1]:port", ":port" (all interfaces). INVALID_ARGUMENT says what is wrong with which
// part.
absl::StatusOr<HostPort> ParseHostPort(absl::string_view text);

// INVALID_ARGUMENT says what is wrong with which part.
absl::StatusOr<RunUrl> ParseRunUrl(absl::string_view text);

// Whether bytes to this host never leave the machine: localhost, 127.0.0.0/8, ::1.
bool IsLoopback(absl::string_view host);

// Until there is TLS everything is plain text, which is allowed on loopback only unless it was asked for
// aloud: INVALID_ARGUMENT naming --insecure and what it means.
absl::Status CheckPlainText(const HostPort& at, bool is_insecure);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_RUN_URL_H_
