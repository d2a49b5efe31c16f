#include "daemon/app/run_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/app/run_checks.h"
#include "daemon/app/run_defaults.h"
#include "daemon/base/status.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/text_format.h"

namespace isthmus {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr size_t kMostTextBytes = 1 << 20;

// Nothing that was computed, sent or recorded depends on these.
const std::set<std::string>& FreeToDiffer() {
  static const auto* const paths = new std::set<std::string>{"rounds.longest_round", "rounds.total_rounds",
                                                             "rounds.total_tokens", "log_level"};
  return *paths;
}

// A field's value as the run file would say it; "absent" when it is not there.
std::string ValueText(const Message& message, const FieldDescriptor& field) {
  if (!message.GetReflection()->HasField(message, &field)) return "absent";
  std::string text;
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  if (field.message_type() != nullptr) {
    printer.PrintToString(message.GetReflection()->GetMessage(message, &field), &text);
    return absl::StrCat("{ ", text, "}");
  }
  printer.PrintFieldValueToString(message, &field, -1, &text);
  return text;
}

absl::Status CompareFields(const Message& a, const Message& b, const std::string& prefix) {
  const google::protobuf::Descriptor& type = *a.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string path = prefix + field.name();
    if (FreeToDiffer().count(path) > 0) continue;
    if (field.message_type() != nullptr && field.message_type() != google::protobuf::Duration::descriptor()) {
      ISTHMUS_RETURN_IF_ERROR(CompareFields(a.GetReflection()->GetMessage(a, &field),
                                            b.GetReflection()->GetMessage(b, &field), path + "."));
      continue;
    }
    const std::string was = ValueText(a, field), is = ValueText(b, field);
    if (was == is) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the run began with another run file: ", path, " was ", was, " and is now ", is));
  }
  return absl::OkStatus();
}

}  // namespace

bool RunFileReading::has_errors() const {
  return std::any_of(findings.begin(), findings.end(), [](const RunFinding& f) { return !f.is_warning; });
}

RunFileReading ReadRunFile(absl::string_view text) {
  RunFileReading reading;
  RunLocations locations;
  const bool is_whole = ParseRunText(text, &reading.run, &locations, &reading.findings);
  FillDefaults(&reading.run);
  // Half a file would only give complaints about what is in the other half.
  if (is_whole) CheckRun(reading.run, locations, &reading.findings);
  std::stable_sort(reading.findings.begin(), reading.findings.end(),
                   [](const RunFinding& a, const RunFinding& b) {
                     return std::tie(a.line, a.column) < std::tie(b.line, b.column);
                   });
  return reading;
}

std::string FindingsText(absl::string_view file_name, const std::vector<RunFinding>& findings) {
  std::string text;
  for (const RunFinding& f : findings) {
    absl::StrAppend(&text, file_name, ":", f.line, ":", f.column, ": ", f.is_warning ? "warning" : "error",
                    ": ", f.message, "\n");
  }
  return text;
}

absl::StatusOr<std::string> ReadRunText(const std::string& path) {
  const auto close = [](std::FILE* file) { std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "rb"), close);
  const auto error = [&](int number) {
    const std::string message = absl::StrCat("run file ", path, ": ", std::strerror(number));
    return number == ENOENT ? absl::NotFoundError(message) : absl::UnavailableError(message);
  };
  if (file == nullptr) return error(errno);
  std::string text(kMostTextBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) return error(errno);
  if (text.size() > kMostTextBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("run file ", path, ": longer than ", kMostTextBytes, " bytes"));
  }
  return text;
}

absl::StatusOr<RunFile> LoadRunFile(const std::string& path, std::string* warnings) {
  ISTHMUS_ASSIGN_OR_RETURN(const std::string text, ReadRunText(path));
  RunFileReading reading = ReadRunFile(text);
  std::string findings = FindingsText(path, reading.findings);
  if (reading.has_errors()) {
    return absl::InvalidArgumentError(absl::StripSuffix(findings, "\n"));  // whoever prints it ends the line
  }
  if (warnings != nullptr) *warnings = std::move(findings);
  return std::move(reading.run);
}

absl::Status CompareForRestart(const RunFile& old_run, const RunFile& new_run) {
  // A run begun by an older program lacks the fields that came later: their defaults are what it did.
  RunFile filled = old_run;
  FillDefaults(&filled);
  return CompareFields(filled, new_run, "");
}

absl::Status CompareForFinishedRun(const RunFile& old_run, const RunFile& new_run, int64_t rounds) {
  const RoundConfig &was = old_run.rounds(), &is = new_run.rounds();
  for (const char* name : {"total_rounds", "total_tokens"}) {
    const FieldDescriptor& field = *RoundConfig::descriptor()->FindFieldByName(name);
    const int64_t old_end = was.GetReflection()->GetInt64(was, &field);
    const int64_t new_end = is.GetReflection()->GetInt64(is, &field);
    // Zero is no end.
    if (old_end == 0 || (new_end != 0 && new_end <= old_end)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "the run is finished, after ", rounds, " rounds, and cannot go on: rounds.", name, " was ",
        ValueText(was, field), " and is now ", ValueText(is, field),
        "; set it back, or begin another run with --init final.safetensors on another --state-dir"));
  }
  return absl::OkStatus();
}

}  // namespace isthmus
