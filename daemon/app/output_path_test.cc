#include "daemon/app/output_path.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

class OutputPathTest : public ::testing::Test {
 protected:
  OutputPathTest() : base_(::testing::TempDir() + "/output_path") {
    std::filesystem::remove_all(base_);
    std::filesystem::create_directories(base_);
  }
  static std::string ErrorOf(const std::string& path) {
    const absl::Status status = CheckOutputPath(path);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << path;
    return std::string(status.message());
  }

  const std::string base_;
};

TEST_F(OutputPathTest, WhatIsThereStaysAndNothingIsLeftBehind) {
  std::ofstream(base_ + "/old") << "text";
  EXPECT_TRUE(CheckOutputPath(base_ + "/old").ok());
  std::ostringstream text;
  text << std::ifstream(base_ + "/old").rdbuf();
  EXPECT_EQ(text.str(), "text");
  EXPECT_TRUE(CheckOutputPath(base_ + "/new").ok());
  EXPECT_FALSE(std::filesystem::exists(base_ + "/new"));
  EXPECT_TRUE(CheckOutputPath("").ok()) << "nothing to write";
  EXPECT_TRUE(CheckOutputPath("/dev/null").ok());
}

TEST_F(OutputPathTest, WhatCannotBeWrittenIsNamedWithTheReason) {
  std::ofstream(base_ + "/old") << "text";
  EXPECT_EQ(ErrorOf(base_), base_ + ": cannot be written: Is a directory");
  EXPECT_EQ(ErrorOf(base_ + "/none/x"), base_ + "/none/x: cannot be written: No such file or directory");
  EXPECT_EQ(ErrorOf(base_ + "/old/x"), base_ + "/old/x: cannot be written: Not a directory");
  EXPECT_EQ(ErrorOf("/proc/x"), "/proc/x: cannot be written: No such file or directory");
}

}  // namespace
}  // namespace isthmus
