#include "daemon/app/text_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace isthmus {
namespace {

int Columns(absl::string_view text) {
  // Continuation bytes of UTF-8 take no column.
  return static_cast<int>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

TextTable::TextTable(const std::vector<std::string>& headings) {
  std::vector<std::string> shown;
  for (absl::string_view heading : headings) {
    is_left_.push_back(absl::ConsumePrefix(&heading, "<"));
    shown.emplace_back(heading);
  }
  rows_.push_back(std::move(shown));
}

void TextTable::AddRow(std::vector<std::string> cells) {
  cells.resize(is_left_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::ToString() const {
  std::vector<int> widths(is_left_.size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Columns(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - Columns(row[i]), ' ');
      absl::StrAppend(&line, i == 0 ? "" : "  ", is_left_[i] ? row[i] : padding,
                      is_left_[i] ? padding : row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

}  // namespace isthmus
