// Frames and updates kept as files must go on reading as they did, and bad ones go on being refused for the
// same reason. To write the files anew: ISTHMUS_REWRITE_GOLDEN=<folder of testdata> <this test's program>.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "compression/golden_cases.h"

namespace isthmus {
namespace {

// The frames' bytes, unlike what they decode to, may differ with another zstd.
constexpr unsigned kGoldenZstd = 10504;

std::string Folder() { return "compression/testdata/"; }

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path << " is missing; see the top of this file";
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(GoldenTest, RewritesTheFilesWhenAsked) {
  const char* folder = std::getenv("ISTHMUS_REWRITE_GOLDEN");
  if (folder == nullptr) return;
  for (const GoldenCase& golden : GoldenCases()) {
    const std::string path = std::string(folder) + "/" + golden.name;
    WriteFile(path, golden.bytes);
    std::string text;
    if (ReadGolden(golden, golden.bytes, &text).ok()) WriteFile(path + ".txt", text);
  }
}

TEST(GoldenTest, GoodFilesDecodeToTheSameNumbers) {
  for (const GoldenCase& golden : GoldenCases()) {
    if (golden.code != absl::StatusCode::kOk) continue;
    std::string text;
    const absl::Status status = ReadGolden(golden, ReadFile(Folder() + golden.name), &text);
    ASSERT_TRUE(status.ok()) << golden.name << ": " << status;
    EXPECT_EQ(text, ReadFile(Folder() + golden.name + ".txt")) << golden.name;
  }
}

TEST(GoldenTest, BadFilesAreRefusedWithTheirError) {
  for (const GoldenCase& golden : GoldenCases()) {
    if (golden.code == absl::StatusCode::kOk) continue;
    std::string text;
    const absl::Status status = ReadGolden(golden, ReadFile(Folder() + golden.name), &text);
    EXPECT_EQ(status.code(), golden.code) << golden.name << ": " << status;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(golden.message)) << golden.name;
  }
}

TEST(GoldenTest, EncodersStillWriteTheSameBytes) {
  if (ZSTD_versionNumber() != kGoldenZstd) GTEST_SKIP() << "the files were written by another zstd";
  for (const GoldenCase& golden : GoldenCases()) {
    EXPECT_EQ(ReadFile(Folder() + golden.name), golden.bytes) << golden.name;
  }
}

}  // namespace
}  // namespace isthmus
