#include "daemon/store/state_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace isthmus {
namespace {

using ::testing::ElementsAre;

class StateDirectoryTest : public ::testing::Test {
 protected:
  StateDirectoryTest() { EXPECT_NE(mkdtemp(path_.data()), nullptr); }
  ~StateDirectoryTest() override { std::filesystem::remove_all(path_); }

  std::unique_ptr<StateDirectory> Open() { return StateDirectory::Open(path_ + "/a/b", {"files"}).value(); }
  std::string Read(const std::string& name) {
    std::stringstream text;
    text << std::ifstream(path_ + "/a/b/" + name).rdbuf();
    return text.str();
  }

  std::string path_ = ::testing::TempDir() + "/state-XXXXXX";
};

TEST_F(StateDirectoryTest, FoldersAreMadeAndTheLockNamesItsHolder) {
  auto directory = Open();
  EXPECT_TRUE(std::filesystem::is_directory(path_ + "/a/b/files"));
  EXPECT_EQ(Read("lock"), absl::StrCat(getpid(), "\n"));
  EXPECT_EQ(StateDirectory::Open(path_ + "/a/b/", {}).status().code(), absl::StatusCode::kFailedPrecondition)
      << "another spelling of the same folder";
  directory.reset();
  EXPECT_TRUE(StateDirectory::Open(path_ + "/a/b/", {}).ok());
}

TEST_F(StateDirectoryTest, AFileIsReplacedWholeOrKeptAsItWas) {
  auto directory = Open();
  ASSERT_EQ(directory->WriteFile("files/x", "one"), absl::OkStatus());
  ASSERT_EQ(directory->WriteFile("files/x", "two"), absl::OkStatus());
  EXPECT_EQ(Read("files/x"), "two");
  const absl::Status status = directory->WriteFile("files/x", [](const StateDirectory::ByteSink& sink) {
    EXPECT_EQ(sink("three, but only half"), absl::OkStatus());
    return absl::InvalidArgumentError("no more");
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Read("files/x"), "two");
  EXPECT_THAT(directory->List("files"), ElementsAre("x"));
}

TEST_F(StateDirectoryTest, TemporaryFilesOfAKilledProcessAreGoneAfterOpening) {
  Open().reset();
  std::ofstream(path_ + "/a/b/files/y.partial") << "half";
  std::ofstream(path_ + "/a/b/z.partial") << "half";
  auto directory = Open();
  EXPECT_TRUE(directory->List("files").empty());
  EXPECT_THAT(directory->List(""), ElementsAre("lock"));
}

TEST_F(StateDirectoryTest, BytesCountFilesAndRemovalIsRepeatable) {
  auto directory = Open();
  const int64_t before = directory->Bytes();
  ASSERT_EQ(directory->WriteFile("files/x", std::string(1000, 'x')), absl::OkStatus());
  EXPECT_EQ(directory->Bytes(), before + 1000);
  EXPECT_EQ(directory->RemoveFile("files/x"), absl::OkStatus());
  EXPECT_EQ(directory->RemoveFile("files/x"), absl::OkStatus());
  EXPECT_EQ(directory->Bytes(), before);
}

TEST_F(StateDirectoryTest, AFailedCallNamesThePathAndWhatTheCallerCanDo) {
  EXPECT_EQ(FileError(ENOSPC, "/p"), absl::ResourceExhaustedError("/p: No space left on device"));
  EXPECT_EQ(FileError(EROFS, "/p"), absl::UnavailableError("/p: Read-only file system"));
  EXPECT_EQ(FileError(ENOENT, "/p"), absl::NotFoundError("/p: No such file or directory"));
}

}  // namespace
}  // namespace isthmus
