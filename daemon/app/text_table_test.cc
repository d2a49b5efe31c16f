#include "daemon/app/text_table.h"

#include "gtest/gtest.h"

namespace isthmus {
namespace {

TEST(TextTable, AlignsNumbersRightAndMarkedColumnsLeft) {
  TextTable table({"<site", "steps/s", "<why"});
  table.AddRow({"site-a", "9.5", "α late"});
  table.AddRow({"b", "10.25", ""});
  EXPECT_EQ(table.ToString(),
            "site    steps/s  why\n"
            "site-a      9.5  α late\n"
            "b         10.25\n");
}

TEST(TextTable, FillsShortRowsAndDropsWhatIsTooLong) {
  TextTable table({"<a", "b"});
  table.AddRow({"x"});
  table.AddRow({"y", "1", "2"});
  EXPECT_EQ(table.ToString(), "a  b\nx\ny  1\n");
}

TEST(TextTable, CountsCodePointsNotBytes) {
  TextTable table({"a", "b"});
  table.AddRow({"é", "1"});
  EXPECT_EQ(table.ToString(), "a  b\né  1\n");
}

}  // namespace
}  // namespace isthmus
