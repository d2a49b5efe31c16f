#include "daemon/base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace isthmus {
namespace {

absl::StatusOr<int> Half(int n) {
  if (n % 2 != 0) return absl::InvalidArgumentError(absl::StrCat(n, " is odd"));
  return n / 2;
}

absl::StatusOr<int> Quarter(int n) {
  ISTHMUS_ASSIGN_OR_RETURN(const int half, Half(n));
  ISTHMUS_ASSIGN_OR_RETURN(int quarter, Half(half));
  return quarter;
}

absl::Status CheckEven(int n, int* reached) {
  ISTHMUS_RETURN_IF_ERROR(Half(n).status());
  ++*reached;
  if (n == 0)
    ISTHMUS_RETURN_IF_ERROR(absl::OkStatus());
  else
    ++*reached;
  return absl::OkStatus();
}

TEST(Annotate, PutsTheThingBeforeTheMessageAndKeepsTheCode) {
  const absl::Status status = Annotate(absl::DataLossError("checksum differs"), "update of round 7");
  EXPECT_EQ(status, absl::DataLossError("update of round 7: checksum differs"));
  EXPECT_TRUE(Annotate(absl::OkStatus(), "anything").ok());
}

TEST(AssignOrReturn, GivesTheValueOrLeavesWithTheStatus) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Quarter(7).status(), absl::InvalidArgumentError("7 is odd"));
  EXPECT_EQ(Quarter(6).status(), absl::InvalidArgumentError("3 is odd"));
}

TEST(AssignOrReturn, MovesWhatCannotBeCopied) {
  const auto make = []() -> absl::StatusOr<std::unique_ptr<int>> { return std::make_unique<int>(5); };
  const auto use = [&]() -> absl::StatusOr<int> {
    ISTHMUS_ASSIGN_OR_RETURN(std::unique_ptr<int> p, make());
    return *p;
  };
  EXPECT_EQ(*use(), 5);
}

TEST(ReturnIfError, LeavesOnlyWithAnErrorAndStandsInAnIf) {
  int reached = 0;
  EXPECT_EQ(CheckEven(3, &reached), absl::InvalidArgumentError("3 is odd"));
  EXPECT_EQ(reached, 0);
  EXPECT_TRUE(CheckEven(4, &reached).ok());
  EXPECT_EQ(reached, 2);
}

}  // namespace
}  // namespace isthmus
