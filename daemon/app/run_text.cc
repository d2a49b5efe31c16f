#include "daemon/app/run_text.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"

namespace isthmus {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;

constexpr int kMostRepairs = 200;

class Collector : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    errors.push_back({line + 1, column + 1, false, message});
  }
  // Unknown fields come as warnings, since the parser is told to go on after them.
  void AddWarning(int line, int column, const std::string& message) override {
    unknown.push_back({line + 1, column + 1, false, message});
  }

  std::vector<RunFinding> errors, unknown;
};

int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

// The text between the `index`-th pair of double quotes.
std::string QuotedPart(const std::string& message, int index) {
  const std::vector<std::string> parts = absl::StrSplit(message, '"');
  const size_t at = static_cast<size_t>(2 * index + 1);
  return at < parts.size() ? parts[at] : "";
}

// "Message type "isthmus.ModelConfig" has no field named "widht"." in our words, with a guess.
std::string UnknownFieldText(const std::string& message) {
  const Descriptor* type =
      RunFile::descriptor()->file()->pool()->FindMessageTypeByName(QuotedPart(message, 0));
  const std::string name = QuotedPart(message, 1);
  if (type == nullptr || name.empty()) return message;
  std::string guess;
  int least = 3;
  for (int i = 0; i < type->field_count(); ++i) {
    const int distance = EditDistance(name, type->field(i)->name());
    if (distance < least) {
      least = distance;
      guess = type->field(i)->name();
    }
  }
  return absl::StrCat(type->name(), " has no field \"", name, "\"",
                      guess.empty() ? "" : absl::StrCat("; did you mean \"", guess, "\"?"));
}

// A statement "name: value" in a text, by character offsets.
struct Scalar {
  std::string name;
  size_t begin = 0, end = 0;
};

bool IsNameCharacter(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// The end of a value that begins at `at`: a quoted text, or anything up to a separator.
size_t ValueEnd(absl::string_view text, size_t at) {
  if (at < text.size() && (text[at] == '"' || text[at] == '\'')) {
    const size_t close = text.substr(0, text.find('\n', at)).find(text[at], at + 1);
    return close == absl::string_view::npos ? at : close + 1;
  }
  while (at < text.size() && !absl::ascii_isspace(text[at]) &&
         absl::string_view(",;{}<>#").find(text[at]) == absl::string_view::npos) {
    ++at;
  }
  return at;
}

// The statement that covers or ends just before the character at `offset` of its line.
bool FindScalar(absl::string_view text, size_t offset, Scalar* found) {
  size_t at = text.rfind('\n', offset == 0 ? 0 : offset - 1);
  at = at == absl::string_view::npos ? 0 : at + 1;
  while (at < text.size() && text[at] != '\n' && at <= offset) {
    if (text[at] == '#') return false;
    if (!absl::ascii_isalpha(text[at])) {
      ++at;
      continue;
    }
    Scalar scalar;
    scalar.begin = at;
    while (at < text.size() && IsNameCharacter(text[at])) ++at;
    scalar.name = std::string(text.substr(scalar.begin, at - scalar.begin));
    size_t value = at;
    while (value < text.size() && text[value] == ' ') ++value;
    if (value >= text.size() || text[value] != ':') continue;
    ++value;
    while (value < text.size() && text[value] == ' ') ++value;
    scalar.end = ValueEnd(text, value);
    if (scalar.end == value) continue;
    if (offset < scalar.end) {
      *found = scalar;
      return true;
    }
    at = scalar.end;
  }
  return false;
}

size_t OffsetOf(absl::string_view text, int line, int column) {
  size_t at = 0;
  for (int i = 1; i < line; ++i) {
    const size_t newline = text.find('\n', at);
    if (newline == absl::string_view::npos) return text.size();
    at = newline + 1;
  }
  return std::min(text.size(), at + static_cast<size_t>(std::max(column - 1, 0)));
}

// The parser reports some mistakes one word too late: moves the finding back to the last `word` before it.
void PointAt(absl::string_view text, absl::string_view word, RunFinding* finding) {
  const size_t offset = OffsetOf(text, finding->line, finding->column);
  const size_t at = word.empty() ? absl::string_view::npos : text.rfind(word, offset);
  if (at == absl::string_view::npos) return;
  const size_t newline = at == 0 ? absl::string_view::npos : text.rfind('\n', at - 1);
  finding->line =
      1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
  finding->column = static_cast<int>(newline == absl::string_view::npos ? at + 1 : at - newline);
}

// The word that an error is about, where it stands before the place the parser gives; empty: the place is
// right.
std::string WordBefore(const std::string& message) {
  if (absl::StartsWith(message, "Unknown enumeration value of ")) return QuotedPart(message, 0);
  if (absl::StartsWith(message, "Invalid value for boolean field ")) return QuotedPart(message, 1);
  return "";
}

}  // namespace

RunLocations::Place RunLocations::Find(absl::string_view path) const {
  Place place;
  const Descriptor* type = RunFile::descriptor();
  const TextFormat::ParseInfoTree* tree = &tree_;
  for (absl::string_view name : absl::StrSplit(path, '.')) {
    if (type == nullptr || tree == nullptr) break;
    const FieldDescriptor* field = type->FindFieldByName(std::string(name));
    if (field == nullptr) break;
    const TextFormat::ParseLocation location = tree->GetLocation(field, -1);
    if (location.line < 0) break;
    place = {location.line + 1, location.column + 1};
    type = field->message_type();
    tree = type == nullptr ? nullptr : tree->GetTreeForNested(field, -1);
  }
  return place;
}

bool RunLocations::IsUnreadable(absl::string_view path) const {
  const size_t dot = path.rfind('.');
  return unreadable_.count(std::string(dot == absl::string_view::npos ? path : path.substr(dot + 1))) > 0;
}

bool ParseRunText(absl::string_view text, RunFile* run, RunLocations* locations,
                  std::vector<RunFinding>* findings) {
  std::string left(text);
  for (int repairs = 0;; ++repairs) {
    Collector collector;
    TextFormat::Parser parser;
    parser.RecordErrorsTo(&collector);
    parser.AllowUnknownField(true);
    parser.WriteLocationsTo(&locations->tree_);
    run->Clear();
    const bool is_read = parser.ParseFromString(left, run);
    for (RunFinding& error : collector.errors) PointAt(left, WordBefore(error.message), &error);
    // The parser gives up at a bad value: note it, blank it out where it stands, and read the rest.
    Scalar scalar;
    const bool can_go_on =
        !is_read && repairs < kMostRepairs && !collector.errors.empty() &&
        FindScalar(left, OffsetOf(left, collector.errors[0].line, collector.errors[0].column), &scalar);
    findings->insert(findings->end(), collector.errors.begin(), collector.errors.end());
    if (can_go_on) {
      std::fill(left.begin() + static_cast<std::ptrdiff_t>(scalar.begin),
                left.begin() + static_cast<std::ptrdiff_t>(scalar.end), ' ');
      locations->unreadable_.insert(scalar.name);
      continue;
    }
    for (RunFinding& finding : collector.unknown) {
      PointAt(left, QuotedPart(finding.message, 1), &finding);
      finding.message = UnknownFieldText(finding.message);
      findings->push_back(std::move(finding));
    }
    return is_read;
  }
}

}  // namespace isthmus
