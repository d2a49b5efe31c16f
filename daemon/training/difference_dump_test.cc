#include "daemon/training/difference_dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace isthmus {
namespace {

using ::testing::HasSubstr;

class DifferenceDumpTest : public testing::Test {
 protected:
  DifferenceDumpTest()
      : folder_(testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
  }

  static TensorTable Table() {
    TensorInfo a, b;
    a.name = "a";
    a.shape = {2, 3};
    b.name = "b";
    b.shape = {4};
    return TensorTable::FromTensors({a, b}).value();
  }

  void WriteIndex(const std::string& text) const {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/index.txt") << text;
  }

  const std::string folder_;
};

TEST_F(DifferenceDumpTest, WhatIsDumpedIsReadBack) {
  DifferenceDump dump = DifferenceDump::Create(folder_, Table()).value();
  const std::vector<float> first = {1, -2, 3, 0.5f, 0, 1e-30f, 4, 5, 6, 7}, second(10, 2.5f);
  ASSERT_TRUE(dump.Add(3, 0, first).ok());
  ASSERT_TRUE(dump.Add(3, 1, second).ok());
  ASSERT_TRUE(dump.Finish().ok());
  const DifferenceSet set = OpenDifferences(folder_).value();
  ASSERT_EQ(set.tensors.size(), 2);
  EXPECT_EQ(set.tensors[0].name, "a");
  EXPECT_EQ(set.tensors[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(set.layout.total(), 10);
  EXPECT_EQ(set.layout.offset(1), 6);
  EXPECT_EQ(set.layout.row_length(0), 3);
  EXPECT_EQ(set.layout.row_length(1), 0);
  ASSERT_EQ(set.differences.size(), 2);
  EXPECT_EQ(set.differences[1].round, 3);
  EXPECT_EQ(set.differences[1].site, 1);
  EXPECT_EQ(set.differences[1].file, "round-3-site-1.f32");
  EXPECT_EQ(LoadDifference(set, set.differences[0]).value(), first);
  EXPECT_EQ(LoadDifference(set, set.differences[1]).value(), second);
}

TEST_F(DifferenceDumpTest, AFolderThatCannotBeMadeIsRefusedByName) {
  std::ofstream(folder_) << "a file";
  for (const std::string& path : {folder_, folder_ + "/below", folder_ + "/"}) {
    const absl::Status status = DifferenceDump::Create(path, Table()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << path;
    EXPECT_THAT(std::string(status.message()), HasSubstr("differences folder " + path + ": ")) << path;
  }
}

TEST_F(DifferenceDumpTest, AFolderThatTakesNoFilesIsRefusedBeforeAnythingIsAdded) {
  std::filesystem::create_directories(folder_ + "/index.txt/x");
  const absl::Status status = DifferenceDump::Create(folder_, Table()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder_ + "/index.txt: cannot be written"));
}

TEST_F(DifferenceDumpTest, AnEarlierSetInTheFolderIsNoneUntilTheNewOneIsFinished) {
  DifferenceDump earlier = DifferenceDump::Create(folder_, Table()).value();
  ASSERT_TRUE(earlier.Finish().ok());
  ASSERT_TRUE(OpenDifferences(folder_).ok());
  DifferenceDump dump = DifferenceDump::Create(folder_, Table()).value();
  EXPECT_EQ(OpenDifferences(folder_).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(dump.Finish().ok());
  EXPECT_TRUE(OpenDifferences(folder_).ok());
}

TEST_F(DifferenceDumpTest, AFolderWithoutAnIndexIsNotFound) {
  DifferenceDump dump = DifferenceDump::Create(folder_, Table()).value();
  ASSERT_TRUE(dump.Add(0, 0, std::vector<float>(10)).ok());
  EXPECT_EQ(OpenDifferences(folder_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(DifferenceDumpTest, AFileOfAnotherLengthIsRefusedByName) {
  DifferenceDump dump = DifferenceDump::Create(folder_, Table()).value();
  ASSERT_TRUE(dump.Add(0, 0, std::vector<float>(9)).ok());
  ASSERT_TRUE(dump.Finish().ok());
  const DifferenceSet set = OpenDifferences(folder_).value();
  const absl::Status status = LoadDifference(set, set.differences[0]).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("round-0-site-0.f32: 36 bytes, not 40"));
}

TEST_F(DifferenceDumpTest, AnIndexThatIsNoneIsRefused) {
  for (const char* text :
       {"", "\n", "tensor\n", "tensor a\n", "tensor a 0\n", "tensor a 2x\n", "tensor a 1099511627776 2\n",
        "vector a 2\n", "difference 0 0 x\n", "tensor a 2\ndifference 0 0\n",
        "tensor a 2\ndifference 0 0 ../x\n", "tensor a 2\ndifference 0 one x\n"}) {
    WriteIndex(text);
    EXPECT_EQ(OpenDifferences(folder_).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace isthmus
