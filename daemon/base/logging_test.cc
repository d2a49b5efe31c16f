#include "daemon/base/logging.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace isthmus {
namespace {

// What `log` writes to standard error, without the time in front.
std::string Logged(LogForm form, const std::function<void()>& log) {
  InitLogging(form, LogLevel::kInfo);
  testing::internal::CaptureStderr();
  log();
  const std::string line = testing::internal::GetCapturedStderr();
  const size_t time_end = form == LogForm::kText ? 24 : line.find("\",\"level") + 2;
  return line.size() < time_end ? line : line.substr(time_end);
}

std::string JsonOf(absl::string_view message) {
  const std::string line = Logged(LogForm::kJson, [&] { Log(LogLevel::kInfo, "", -1, message); });
  const std::string before = "\"level\":\"info\",\"site\":\"\",\"round\":-1,\"message\":";
  EXPECT_TRUE(absl::StartsWith(line, before)) << line;
  return line.substr(before.size(), line.size() - before.size() - 2);
}

TEST(Logging, WritesSiteAndRoundOnEveryTextLine) {
  EXPECT_EQ(Logged(LogForm::kText, [] { Log(LogLevel::kInfo, "paris", 7, "closed"); }),
            "I [paris r7] closed\n");
  EXPECT_EQ(Logged(LogForm::kText, [] { Log(LogLevel::kWarning, "", -1, "odd"); }), "W [- r-] odd\n");
}

TEST(Logging, WritesOneObjectPerJsonLine) {
  EXPECT_EQ(Logged(LogForm::kJson, [] { Log(LogLevel::kError, "paris", 7, "lost"); }),
            "\"level\":\"error\",\"site\":\"paris\",\"round\":7,\"message\":\"lost\"}\n");
}

TEST(Logging, EscapesWhatJsonReserves) {
  EXPECT_EQ(JsonOf("say \"hi\" \\ now"), R"("say \"hi\" \\ now")");
  EXPECT_EQ(JsonOf(absl::string_view("a\nb\tc\0d\x1f", 8)), R"("a\u000ab\u0009c\u0000d\u001f")");
  EXPECT_EQ(JsonOf("100 % {braces} %v"), "\"100 % {braces} %v\"");
}

TEST(Logging, KeepsValidUtf8AndReplacesOtherBytesInJson) {
  EXPECT_EQ(JsonOf("Zürich → 東京 😀"), "\"Zürich → 東京 😀\"");
  // A stray continuation byte, a truncated sequence, an overlong slash, a surrogate, beyond the last plane.
  EXPECT_EQ(JsonOf("a\x80z"), "\"a\\ufffdz\"");
  EXPECT_EQ(JsonOf("a\xe2\x82"), "\"a\\ufffd\\ufffd\"");
  EXPECT_EQ(JsonOf("\xc0\xaf"), "\"\\ufffd\\ufffd\"");
  EXPECT_EQ(JsonOf("\xed\xa0\x80"), "\"\\ufffd\\ufffd\\ufffd\"");
  EXPECT_EQ(JsonOf("\xf4\x90\x80\x80"), "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

TEST(Logging, LetsNobodyForgeASecondTextLine) {
  EXPECT_EQ(Logged(LogForm::kText, [] { Log(LogLevel::kInfo, "x\ny", 1, "a\nb\x1b[31m"); }),
            "I [x\\ny r1] a\\nb\\x1b[31m\n");
}

TEST(Logging, LeavesOutWhatIsBelowTheLevel) {
  EXPECT_EQ(Logged(LogForm::kText, [] { Log(LogLevel::kDebug, "", -1, "noise"); }), "");
}

TEST(Logging, KnowsItsLevelsByName) {
  LogLevel level = LogLevel::kInfo;
  EXPECT_TRUE(ParseLogLevel("error", &level).ok());
  EXPECT_EQ(level, LogLevel::kError);
  EXPECT_TRUE(ParseLogLevel("debug", &level).ok());
  EXPECT_EQ(level, LogLevel::kDebug);
  const absl::Status status = ParseLogLevel("loud", &level);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "no such log level: 'loud' (debug, info, warning, error)");
  EXPECT_EQ(level, LogLevel::kDebug) << "unchanged";
}

TEST(SiteLog, CarriesSiteAndRoundAndJoinsItsParts) {
  SiteLog log("oslo");
  log.set_round(3);
  EXPECT_EQ(Logged(LogForm::kText, [&] { log.Warning("lost ", 2, " frames"); }),
            "W [oslo r3] lost 2 frames\n");
}

TEST(SiteLog, GivesAReasonOnlyWhenItChanges) {
  SiteLog log("oslo");
  EXPECT_EQ(Logged(LogForm::kText, [&] { log.Reason("waiting for a"); }), "I [oslo r-] waiting for a\n");
  EXPECT_EQ(Logged(LogForm::kText, [&] { log.Reason("waiting for a"); }), "");
  EXPECT_EQ(Logged(LogForm::kText, [&] { log.Reason("waiting for b"); }), "I [oslo r-] waiting for b\n");
  EXPECT_EQ(Logged(LogForm::kText, [&] { log.Reason("waiting for a"); }), "I [oslo r-] waiting for a\n");
}

}  // namespace
}  // namespace isthmus
