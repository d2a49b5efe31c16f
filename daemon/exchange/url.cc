#include "daemon/exchange/url.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/base/status.h"

namespace isthmus {
namespace {

constexpr absl::string_view kScheme = "isthmus://";

bool IsHostCharacter(char c) { return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_'; }
bool IsIpv6Character(char c) { return absl::ascii_isxdigit(c) || c == ':' || c == '.' || c == '%'; }

absl::Status Wrong(absl::string_view text, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("'", text, "': ", what));
}

// Splits at the colon before the port; the host comes without brackets.
absl::Status SplitHost(absl::string_view text, absl::string_view* host, absl::string_view* port) {
  if (absl::StartsWith(text, "[")) {
    const size_t close = text.find(']');
    if (close == absl::string_view::npos) return Wrong(text, "'[' without ']'");
    *host = text.substr(1, close - 1);
    for (char c : *host) {
      if (!IsIpv6Character(c)) return Wrong(text, "no IPv6 address between the brackets");
    }
    if (!absl::ConsumePrefix(&(text = text.substr(close + 1)), ":")) {
      return Wrong(*host, "no ':port' after the ']'");
    }
    *port = text;
    return absl::OkStatus();
  }
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return Wrong(text, "no port: write host:port");
  *host = text.substr(0, colon);
  *port = text.substr(colon + 1);
  if (absl::StrContains(*host, ":")) return Wrong(text, "an IPv6 address needs brackets: [address]:port");
  for (char c : *host) {
    if (!IsHostCharacter(c))
      return Wrong(text, absl::StrCat("host has the character '", std::string(1, c), "'"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string HostPort::ToString() const {
  return absl::StrContains(host, ":") ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

bool HostPort::IsLoopback() const {
  if (absl::EqualsIgnoreCase(host, "localhost") || host == "::1") return true;
  if (!absl::StartsWith(host, "127.")) return false;
  // A name may begin so too: only digits and dots are an address.
  for (char c : host) {
    if (!absl::ascii_isdigit(c) && c != '.') return false;
  }
  return true;
}

absl::StatusOr<HostPort> ParseHostPort(absl::string_view text, bool may_be_any) {
  absl::string_view host, port;
  ISTHMUS_RETURN_IF_ERROR(SplitHost(text, &host, &port));
  if (host.empty()) return Wrong(text, "no host before the port");
  HostPort parsed;
  parsed.host = std::string(host);
  bool is_number = !port.empty() && port.size() <= 5;
  for (char c : port) is_number = is_number && absl::ascii_isdigit(c);
  if (!is_number || !absl::SimpleAtoi(port, &parsed.port) || parsed.port > 65535) {
    return Wrong(text, absl::StrCat("port '", port, "' is not a number from 1 to 65535"));
  }
  if (parsed.port == 0 && !may_be_any) return Wrong(text, "port 0 cannot be dialled");
  return parsed;
}

absl::StatusOr<RunUrl> ParseRunUrl(absl::string_view text) {
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, kScheme)) {
    return Wrong(text, "must begin with isthmus:// as in isthmus://host:port/run");
  }
  const size_t slash = rest.find('/');
  if (slash == absl::string_view::npos) {
    return Wrong(text, "no run name: write isthmus://host:port/run");
  }
  RunUrl url;
  absl::StatusOr<HostPort> coordinator = ParseHostPort(rest.substr(0, slash), /*may_be_any=*/false);
  if (!coordinator.ok()) return Annotate(coordinator.status(), text);
  url.coordinator = *std::move(coordinator);
  url.run = std::string(absl::StripSuffix(rest.substr(slash + 1), "/"));
  if (url.run.empty()) return Wrong(text, "no run name after the last '/'");
  for (char c : url.run) {
    if (!IsHostCharacter(c)) {
      return Wrong(text,
                   absl::StrCat("run name '", url.run, "' may have only letters, digits, '-', '_' and '.'"));
    }
  }
  return url;
}

}  // namespace isthmus
