#include "daemon/base/logging.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_format.h"

namespace isthmus {
namespace {

constexpr char kTextPattern[] = "%Y-%m-%dT%H:%M:%S.%e %L %v";
constexpr char kJsonPattern[] = "{\"time\":\"%Y-%m-%dT%H:%M:%S.%e\",\"level\":\"%l\",%v}";

LogForm g_form = LogForm::kText;  // set once by InitLogging, before other threads start

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

spdlog::logger& Logger() {
  static auto* const logger = [] {
    auto* l = new spdlog::logger("isthmus", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    l->set_pattern(kTextPattern);
    l->flush_on(spdlog::level::debug);
    return l;
  }();
  return *logger;
}

// Length of the UTF-8 sequence at the start of `text` (not empty), or 0 when there is no valid one.
size_t Utf8Length(absl::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  const bool is_overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool is_beyond = (first == 0xed && second >= 0xa0) || (first == 0xf4 && second >= 0x90);
  return is_overlong || is_beyond ? 0 : length;
}

std::string JsonString(absl::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const unsigned char c = text[0];
    const size_t length = Utf8Length(text);
    if (length == 0) {
      out += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      out += {'\\', static_cast<char>(c)};
    } else if (c < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", c);
    } else {
      absl::StrAppend(&out, text.substr(0, length));
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out + "\"";
}

// Control characters made visible, so that a message from outside can neither forge a line nor drive a
// terminal.
std::string TextString(absl::string_view text) {
  std::string out;
  for (unsigned char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c < 0x20 || c == 0x7f) {
      absl::StrAppendFormat(&out, "\\x%02x", c);
    } else {
      out += static_cast<char>(c);
    }
  }
  return out;
}

}  // namespace

absl::Status ParseLogLevel(absl::string_view text, LogLevel* level) {
  if (text == "debug")
    *level = LogLevel::kDebug;
  else if (text == "info")
    *level = LogLevel::kInfo;
  else if (text == "warning")
    *level = LogLevel::kWarning;
  else if (text == "error")
    *level = LogLevel::kError;
  else
    return absl::InvalidArgumentError(
        absl::StrCat("no such log level: '", text, "' (debug, info, warning, error)"));
  return absl::OkStatus();
}

void InitLogging(LogForm form, LogLevel level) {
  g_form = form;
  Logger().set_level(ToSpdlog(level));
  Logger().set_pattern(form == LogForm::kJson ? kJsonPattern : kTextPattern);
}

void Log(LogLevel level, absl::string_view site, int64_t round, absl::string_view message) {
  if (!Logger().should_log(ToSpdlog(level))) return;
  std::string line;
  if (g_form == LogForm::kJson) {
    line = absl::StrCat("\"site\":", JsonString(site), ",\"round\":", round,
                        ",\"message\":", JsonString(message));
  } else {
    line = absl::StrCat("[", site.empty() ? "-" : TextString(site), " r",
                        round < 0 ? "-" : absl::StrCat(round), "] ", TextString(message));
  }
  Logger().log(ToSpdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace isthmus
