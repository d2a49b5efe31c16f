#include "daemon/app/run_url.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace isthmus {
namespace {

absl::Status Wrong(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("\"", text, "\": ", why));
}

bool IsNameCharacter(char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.'; }

bool IsHostCharacter(char c, bool is_bracketed) {
  return IsNameCharacter(c) || (is_bracketed && (c == ':' || c == '%'));
}

}  // namespace

std::string HostPort::ToString() const {
  return absl::StrContains(host, ':') ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

absl::StatusOr<HostPort> ParseHostPort(absl::string_view text) {
  HostPort at;
  absl::string_view host = text, port;
  bool has_port = false;
  const bool is_bracketed = absl::StartsWith(text, "[");
  if (is_bracketed) {
    const size_t end = text.find(']');
    if (end == absl::string_view::npos) return Wrong(text, "the bracket of the IPv6 address is not closed");
    host = text.substr(1, end - 1);
    port = text.substr(end + 1);
    if (!port.empty() && !absl::ConsumePrefix(&port, ":"))
      return Wrong(text, "after ']' comes ':' and a port");
    has_port = end + 1 < text.size();
    if (host.empty()) return Wrong(text, "the host is empty");
  } else if (const size_t colon = text.find(':'); colon != absl::string_view::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
    has_port = true;
    if (absl::StrContains(port, ':')) return Wrong(text, "an IPv6 address stands in brackets: [::1]:PORT");
    if (host.empty()) host = "0.0.0.0";
  }
  if (host.empty()) return Wrong(text, "the host is empty");
  if (!std::all_of(host.begin(), host.end(), [&](char c) { return IsHostCharacter(c, is_bracketed); })) {
    return Wrong(text, "the host has a character that no host name has");
  }
  if (has_port && (!absl::SimpleAtoi(port, &at.port) || at.port < 0 || at.port > 65535)) {
    return Wrong(text, "the port is no number from 0 to 65535");
  }
  at.host = std::string(host);
  return at;
}

absl::StatusOr<RunUrl> ParseRunUrl(absl::string_view text) {
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, "isthmus://"))
    return Wrong(text, "a run's URL looks like isthmus://HOST:PORT/RUN");
  const size_t slash = rest.find('/');
  const absl::string_view name = slash == absl::string_view::npos ? "" : rest.substr(slash + 1);
  if (name.empty()) return Wrong(text, "the name of the run is missing: isthmus://HOST:PORT/RUN");
  if (!std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return Wrong(text, "the name of a run has letters, digits, '-', '_' and '.' only");
  }
  if (slash == 0 || rest[0] == ':') return Wrong(text, "the host is missing: isthmus://HOST:PORT/RUN");
  const auto at = ParseHostPort(rest.substr(0, slash));
  if (!at.ok()) return Wrong(text, at.status().message());
  if (at->port == 0) return Wrong(text, "the port is 0, where nobody can be reached");
  return RunUrl{*at, std::string(name)};
}

bool IsLoopback(absl::string_view host) {
  if (absl::EqualsIgnoreCase(host, "localhost") || host == "::1") return true;
  const std::vector<absl::string_view> parts = absl::StrSplit(host, '.');
  if (parts.size() != 4 || parts[0] != "127") return false;
  return std::all_of(parts.begin(), parts.end(), [](absl::string_view part) {
    int value = 0;
    return absl::SimpleAtoi(part, &value) && value >= 0 && value <= 255;
  });
}

absl::Status CheckPlainText(const HostPort& at, bool is_insecure) {
  if (is_insecure || IsLoopback(at.host)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      at.ToString(), " is not on this machine, and there is no encryption: anyone on the way can read and ",
      "change the run. On a network you trust, such as a VPN, say --insecure"));
}

}  // namespace isthmus
