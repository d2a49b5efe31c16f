// What the ledger says and keeps when its disk is full or read-only: on a tmpfs mounted for the test, since
// root is not stopped by file modes. Skipped where mounting is not allowed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "daemon/store/ledger_samples.h"
#include "daemon/store/sqlite_ledger.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

class LedgerDiskTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(mkdtemp(mount_point_.data()), nullptr);
    if (mount("tmpfs", mount_point_.c_str(), "tmpfs", 0, "size=1m") != 0) {
      const int error = errno;
      std::filesystem::remove(mount_point_);
      GTEST_SKIP() << "mounting a tmpfs needs root: " << std::strerror(error);
    }
    is_mounted_ = true;
  }
  void TearDown() override {
    if (!is_mounted_) return;
    EXPECT_EQ(umount2(mount_point_.c_str(), MNT_DETACH), 0);
    std::filesystem::remove(mount_point_);
  }

  absl::StatusOr<std::unique_ptr<SqliteLedger>> Open() {
    return SqliteLedger::Open({state_path(), "demo", nullptr}, table_);
  }
  std::string state_path() const { return mount_point_ + "/state"; }
  std::unique_ptr<SqliteLedger> Started() {
    auto ledger = Open().value();
    EXPECT_EQ(ledger->Begin(ConformanceRun()), absl::OkStatus());
    EXPECT_EQ(ledger->AddSnapshot(MakeSnapshotInfo(0), MakeSnapshotValues(0), 3), absl::OkStatus());
    EXPECT_EQ(ledger->Commit(MakeCommit(1), UpdateOf(1), {}), absl::OkStatus());
    return ledger;
  }
  // Leaves `pages` free pages.
  void Fill(int pages) {
    const std::string path = mount_point_ + "/ballast";
    std::ofstream file(path, std::ios::binary);
    const std::string page(4096, 'b');
    while (file.write(page.data(), static_cast<std::streamsize>(page.size())).flush()) {
    }
    file.close();
    const uintmax_t size = std::filesystem::file_size(path) / 4096 * 4096;
    std::filesystem::resize_file(path, size - static_cast<uintmax_t>(pages) * 4096);
  }
  void MakeRoom() { std::filesystem::remove(mount_point_ + "/ballast"); }
  void SetReadOnly(bool is_read_only) {
    const unsigned long flags = MS_REMOUNT | (is_read_only ? MS_RDONLY : 0);
    ASSERT_EQ(mount("tmpfs", mount_point_.c_str(), "tmpfs", flags, "size=1m"), 0) << std::strerror(errno);
  }
  static CommitRecord CommitOf(int64_t round, const std::string& update) {
    CommitRecord record = MakeCommit(round);
    record.set_update_bytes(static_cast<int64_t>(update.size()));
    record.set_update_digest(DigestOf(update).ToBytes());
    return record;
  }

  std::string mount_point_ = ::testing::TempDir() + "/disk-XXXXXX";
  bool is_mounted_ = false;
  std::shared_ptr<const TensorTable> table_ = ConformanceTable();
};

TEST_F(LedgerDiskTest, AnUpdateThatDoesNotFitIsResourceExhaustedAndLeavesNothingHalfWritten) {
  auto ledger = Started();
  Fill(8);
  const std::string update(100'000, 'u');
  const absl::Status status = ledger->Commit(CommitOf(2, update), update, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(state_path() + "/updates/2-0: No space left on device"));
  EXPECT_EQ(ledger->Load()->commits.size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(state_path() + "/updates/2-0"));
  EXPECT_FALSE(std::filesystem::exists(state_path() + "/updates/2-0.partial"));
  MakeRoom();
  EXPECT_EQ(ledger->Commit(CommitOf(2, update), update, {}), absl::OkStatus());
  ledger.reset();
  EXPECT_EQ((*Open())->Load()->commits.size(), 2u);
}

TEST_F(LedgerDiskTest, RecordsThatDoNotFitAreResourceExhaustedAtEveryAmountOfRoom) {
  auto ledger = Started();
  int64_t committed = 1;
  bool was_full = false;
  // However little is free, a commit is there whole or not at all.
  for (int pages = 0; pages < 12; ++pages) {
    Fill(pages);
    const std::string update = UpdateOf(committed + 1);
    LedgerWrite also;
    also.events.emplace_back();
    also.events[0].set_reason(std::string(9000, 'e'));
    const absl::Status status = ledger->Commit(CommitOf(committed + 1, update), update, also);
    if (status.ok()) {
      ++committed;
    } else {
      was_full = true;
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(state_path()));
    }
    MakeRoom();
    ledger.reset();
    ledger = Open().value();
    const auto state = ledger->Load();
    ASSERT_EQ(state.status(), absl::OkStatus());
    EXPECT_EQ(state->commits.size(), static_cast<size_t>(committed)) << pages << " pages";
    EXPECT_EQ(state->events.size(), static_cast<size_t>(committed - 1));
  }
  EXPECT_TRUE(was_full);
  EXPECT_GT(committed, 1);
}

TEST_F(LedgerDiskTest, ASnapshotThatDoesNotFitLeavesTheOldOnes) {
  table_ = std::make_shared<const TensorTable>(TensorTable::FromTensors({{"big", {50'000}}}).value());
  auto ledger = Open().value();
  ASSERT_EQ(ledger->Begin(ConformanceRun()), absl::OkStatus());
  SnapshotValues values;
  values.anchor.assign(50'000, 1.5f);
  ASSERT_EQ(ledger->AddSnapshot(MakeSnapshotInfo(0), values, 1), absl::OkStatus());
  Fill(8);
  EXPECT_EQ(ledger->AddSnapshot(MakeSnapshotInfo(5), values, 1).code(), absl::StatusCode::kResourceExhausted);
  ASSERT_EQ(ledger->Load()->snapshots.size(), 1u);
  EXPECT_EQ(ledger->Load()->snapshots[0].round(), 0);
  EXPECT_TRUE(ledger->OpenBlob({SNAPSHOT, 0, 0}).ok());
  EXPECT_FALSE(std::filesystem::exists(state_path() + "/snapshots/5.safetensors.partial"));
}

TEST_F(LedgerDiskTest, AFullDiskAtTheStartIsResourceExhaustedNamingThePath) {
  Fill(0);
  const auto ledger = Open();
  EXPECT_EQ(ledger.status().code(), absl::StatusCode::kResourceExhausted) << ledger.status();
  EXPECT_THAT(std::string(ledger.status().message()), HasSubstr(mount_point_));
}

TEST_F(LedgerDiskTest, AReadOnlyDirectoryIsTheUsersToPutRight) {
  Started().reset();
  SetReadOnly(true);
  const auto ledger = Open();
  EXPECT_EQ(ledger.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(ledger.status().message()), HasSubstr(state_path()));
  EXPECT_THAT(std::string(ledger.status().message()), HasSubstr("Read-only file system"));
  SetReadOnly(false);
  EXPECT_EQ((*Open())->Load()->commits.size(), 1u);
}

TEST_F(LedgerDiskTest, AMissingDirectoryOnAReadOnlyDiskIsTheUsersToPutRight) {
  SetReadOnly(true);
  const auto ledger = Open();
  EXPECT_EQ(ledger.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(ledger.status().message()), HasSubstr(state_path() + ": Read-only file system"));
}

}  // namespace
}  // namespace isthmus
