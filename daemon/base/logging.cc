#include "daemon/base/logging.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "absl/strings/str_format.h"

namespace isthmus {
namespace {

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
    l->set_pattern("%Y-%m-%dT%H:%M:%S.%e %L %v");
    l->flush_on(spdlog::level::debug);
    return l;
  }();
  return *logger;
}

std::string JsonString(absl::string_view text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20) {
      out += absl::StrFormat("\\u%04x", c);
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + "\"";
}

}  // namespace

absl::Status ParseLogLevel(absl::string_view text, LogLevel* level) {
  if (text == "debug") *level = LogLevel::kDebug;
  else if (text == "info") *level = LogLevel::kInfo;
  else if (text == "warning") *level = LogLevel::kWarning;
  else if (text == "error") *level = LogLevel::kError;
  else return absl::InvalidArgumentError(absl::StrCat("no such log level: '", text, "' (debug, info, warning, error)"));
  return absl::OkStatus();
}

void InitLogging(LogForm form, LogLevel level) {
  g_form = form;
  Logger().set_level(ToSpdlog(level));
  if (form == LogForm::kJson) Logger().set_pattern("{\"time\":\"%Y-%m-%dT%H:%M:%S.%e\",\"level\":\"%l\",%v}");
}

void Log(LogLevel level, absl::string_view site, int64_t round, absl::string_view message) {
  if (!Logger().should_log(ToSpdlog(level))) return;
  std::string line;
  if (g_form == LogForm::kJson) {
    line = absl::StrCat("\"site\":", JsonString(site), ",\"round\":", round, ",\"message\":", JsonString(message));
  } else {
    line = absl::StrCat("[", site.empty() ? "-" : site, " r", round < 0 ? "-" : absl::StrCat(round), "] ", message);
  }
  Logger().log(ToSpdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace isthmus
