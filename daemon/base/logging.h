// The only door to spdlog. Every line carries the site and the round it belongs to.
#ifndef ISTHMUS_DAEMON_BASE_LOGGING_H_
#define ISTHMUS_DAEMON_BASE_LOGGING_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace isthmus {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogForm { kText, kJson };

// INVALID_ARGUMENT for a word that is no level: debug, info, warning, error.
absl::Status ParseLogLevel(absl::string_view text, LogLevel* level);

// Once, from main, before the first line: to standard error. Without it: text, info.
void InitLogging(LogForm form, LogLevel level);

// Writes one line. `site` and `round` may be empty and -1 where there is none. Thread-safe.
void Log(LogLevel level, absl::string_view site, int64_t round, absl::string_view message);

// A logger bound to one site that remembers the round. Not thread-safe: one per loop.
class SiteLog {
 public:
  explicit SiteLog(std::string site) : site_(std::move(site)) {}

  void set_round(int64_t round) { round_ = round; }

  template <typename... Parts>
  void Info(const Parts&... parts) const {
    Log(LogLevel::kInfo, site_, round_, absl::StrCat(parts...));
  }
  template <typename... Parts>
  void Warning(const Parts&... parts) const {
    Log(LogLevel::kWarning, site_, round_, absl::StrCat(parts...));
  }
  template <typename... Parts>
  void Error(const Parts&... parts) const {
    Log(LogLevel::kError, site_, round_, absl::StrCat(parts...));
  }
  template <typename... Parts>
  void Debug(const Parts&... parts) const {
    Log(LogLevel::kDebug, site_, round_, absl::StrCat(parts...));
  }

  // Logs a reason only when it differs from the last one given here.
  void Reason(absl::string_view reason) {
    if (reason == last_reason_) return;
    last_reason_ = std::string(reason);
    Log(LogLevel::kInfo, site_, round_, reason);
  }

 private:
  std::string site_;
  int64_t round_ = -1;
  std::string last_reason_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_BASE_LOGGING_H_
