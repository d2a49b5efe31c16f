// A table of text in columns as wide as their widest cell, for terminals.
#ifndef ISTHMUS_DAEMON_APP_TEXT_TABLE_H_
#define ISTHMUS_DAEMON_APP_TEXT_TABLE_H_

#include <string>
#include <vector>

namespace isthmus {

// Not thread-safe. Cells are UTF-8; each code point counts as one column.
class TextTable {
 public:
  // Two blanks between columns; a heading that begins with '<' is left-aligned (and shown without it), any
  // other right-aligned.
  explicit TextTable(const std::vector<std::string>& headings);

  // A row shorter than the headings is filled with blanks; what is longer is dropped.
  void AddRow(std::vector<std::string> cells);

  // Headings and rows, a newline after each, no blanks at line ends.
  std::string ToString() const;

 private:
  std::vector<bool> is_left_;
  std::vector<std::vector<std::string>> rows_;  // the headings first
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_TEXT_TABLE_H_
