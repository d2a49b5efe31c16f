#include "daemon/store/sqlite_ledger.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "daemon/store/ledger_conformance.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

class SqliteDirectory {
 public:
  explicit SqliteDirectory(std::shared_ptr<const TensorTable> table) : table_(std::move(table)) {}
  ~SqliteDirectory() { std::filesystem::remove_all(path_); }
  std::unique_ptr<Ledger> Open() {
    auto ledger = SqliteLedger::Open({path_ + "/state", "demo", nullptr}, table_);
    EXPECT_EQ(ledger.status(), absl::OkStatus());
    return *std::move(ledger);
  }

 private:
  std::shared_ptr<const TensorTable> table_;
  std::string path_ = FreshFolder();
};

INSTANTIATE_TYPED_TEST_SUITE_P(Sqlite, LedgerConformance, SqliteDirectory);

class SqliteLedgerTest : public ::testing::Test {
 protected:
  ~SqliteLedgerTest() override { std::filesystem::remove_all(path_); }

  absl::StatusOr<std::unique_ptr<SqliteLedger>> Open(const std::string& run_name = "demo",
                                                     DurableHook hook = nullptr) {
    return SqliteLedger::Open({path_, run_name, std::move(hook)}, table_);
  }
  // A run with snapshots 0 and 2 and commits 1 to 3, closed again.
  void MakeRun() {
    auto ledger = Open().value();
    ASSERT_EQ(ledger->Begin(ConformanceRun()), absl::OkStatus());
    ASSERT_EQ(ledger->AddSnapshot(MakeSnapshotInfo(0), MakeSnapshotValues(0), 3), absl::OkStatus());
    for (int64_t round = 1; round <= 3; ++round) {
      ASSERT_EQ(ledger->Commit(MakeCommit(round), UpdateOf(round), {}), absl::OkStatus());
    }
  }
  static std::string Message(const absl::Status& status) { return std::string(status.message()); }
  static void Overwrite(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  void Sql(const std::string& sql) {
    ASSERT_EQ(Database::Open(path_ + "/ledger.sqlite").value()->Execute(sql), absl::OkStatus());
  }

  std::shared_ptr<const TensorTable> table_ = ConformanceTable();
  std::string path_ = FreshFolder();
};

TEST_F(SqliteLedgerTest, ADirectoryInUseIsRefusedNamingTheProcess) {
  auto holder = Open().value();
  const auto second = Open();
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(second.status()),
            absl::StrCat("state directory ", path_, " is in use by process ", getpid()));
  holder.reset();
  EXPECT_EQ(Open().status(), absl::OkStatus());
}

TEST_F(SqliteLedgerTest, ADirectoryOfANewerFormatIsRefusedNamingBothAndLeftAsItWas) {
  MakeRun();
  Sql("PRAGMA user_version = 7");
  for (int i = 0; i < 2; ++i) {
    const auto ledger = Open();
    EXPECT_EQ(ledger.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(Message(ledger.status()),
                HasSubstr("was written in format 7, this program knows formats up to 1"));
  }
  Sql("PRAGMA user_version = 1");
  EXPECT_EQ((*Open())->Load()->commits.size(), 3u);
}

TEST_F(SqliteLedgerTest, ADirectoryOfAnotherRunIsRefusedNamingBoth) {
  MakeRun();
  const auto ledger = Open("other");
  EXPECT_EQ(ledger.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(ledger.status()),
            absl::StrCat("state directory ", path_, " holds run \"demo\", not \"other\""));
  EXPECT_EQ((*Open(""))->Load()->restarts, 1) << "a refused start is no start";
}

TEST_F(SqliteLedgerTest, ADatabaseOfAnotherProgramIsRefused) {
  Sql("CREATE TABLE theirs (x)");
  const auto ledger = Open();
  EXPECT_EQ(ledger.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(ledger.status()), HasSubstr("is a database of another program"));
}

TEST_F(SqliteLedgerTest, AFileThatIsNoDatabaseIsDataLossNamingThePath) {
  Overwrite(path_ + "/ledger.sqlite", std::string(4096, 'x'));
  const auto ledger = Open();
  EXPECT_EQ(ledger.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(ledger.status()), HasSubstr(path_ + "/ledger.sqlite"));
}

TEST_F(SqliteLedgerTest, ADatabaseCutShortIsDataLoss) {
  MakeRun();
  std::filesystem::resize_file(path_ + "/ledger.sqlite", 4096);
  const auto ledger = Open();
  const absl::Status status = ledger.ok() ? (*ledger)->Load().status() : ledger.status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
}

TEST_F(SqliteLedgerTest, ALedgerThatLostItsRecordsIsRefusedAndNothingIsSwept) {
  MakeRun();
  std::filesystem::copy(path_, path_ + ".kept", std::filesystem::copy_options::recursive);
  // The database gone altogether, and one whose last records are gone.
  for (const char* lost : {"", "DELETE FROM commits WHERE round > 1"}) {
    std::filesystem::remove_all(path_);
    std::filesystem::copy(path_ + ".kept", path_, std::filesystem::copy_options::recursive);
    if (*lost != 0) {
      Sql(lost);
    } else {
      for (const char* file : {"ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"}) {
        std::filesystem::remove(path_ + "/" + file);
      }
    }
    for (int i = 0; i < 2; ++i) {
      const auto ledger = Open();
      EXPECT_EQ(ledger.status().code(), absl::StatusCode::kDataLoss);
      EXPECT_THAT(Message(ledger.status()), HasSubstr("is damaged or was not copied with the rest"));
    }
    for (const char* file : {"updates/1-0", "updates/2-0", "updates/3-0", "snapshots/0.safetensors"}) {
      EXPECT_TRUE(std::filesystem::exists(path_ + "/" + file)) << file;
    }
  }
  std::filesystem::remove_all(path_ + ".kept");
}

TEST_F(SqliteLedgerTest, ARowThatCannotBeReadIsDataLossNamingItsTable) {
  MakeRun();
  Sql("UPDATE commits SET record = x'FF' WHERE round = 2");
  const auto state = (*Open())->Load();
  EXPECT_EQ(state.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(state.status()), HasSubstr("a row of commits cannot be read"));
}

TEST_F(SqliteLedgerTest, AFlippedBitAShortenedAndAMissingUpdateAreDataLossNamingTheFile) {
  MakeRun();
  const std::string file = path_ + "/updates/2-0";
  std::string flipped = UpdateOf(2);
  flipped[0] ^= 1;
  Overwrite(file, flipped);
  EXPECT_EQ((*Open())->Load().status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message((*Open())->Load().status()), HasSubstr(file));
  Overwrite(file, "short");
  EXPECT_THAT(Message((*Open())->Load().status()), HasSubstr(file + ": has 5 bytes, the ledger says 17"));
  EXPECT_EQ((*Open())->OpenBlob({UPDATE, 2, 0}).status().code(), absl::StatusCode::kDataLoss);
  std::filesystem::remove(file);
  EXPECT_EQ((*Open())->Load().status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message((*Open())->Load().status()), HasSubstr(file));
}

TEST_F(SqliteLedgerTest, WhatAKilledProcessLeftWithoutARecordIsSweptAtTheNextStart) {
  MakeRun();
  for (const char* name : {"updates/4-0", "updates/4-0.partial", "updates/stray", "snapshots/3.safetensors",
                           "snapshots/3.safetensors.partial"}) {
    Overwrite(path_ + "/" + name, "left over");
  }
  auto ledger = Open().value();
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
    if (entry.is_regular_file()) left.push_back(entry.path().filename());
  }
  EXPECT_THAT(
      left, ::testing::UnorderedElementsAre("lock", "ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm",
                                            "1-0", "2-0", "3-0", "0.safetensors"));
  EXPECT_EQ(ledger->Load()->commits.size(), 3u);
}

TEST_F(SqliteLedgerTest, TheLayoutOnDiskIsTheDocumentedOne) {
  MakeRun();
  EXPECT_TRUE(std::filesystem::exists(path_ + "/ledger.sqlite"));
  EXPECT_TRUE(std::filesystem::exists(path_ + "/updates/3-0"));
  EXPECT_TRUE(std::filesystem::exists(path_ + "/snapshots/0.safetensors"));
}

TEST_F(SqliteLedgerTest, TheFileIsDurableBeforeItsRecordIs) {
  MakeRun();
  std::vector<std::string> acts;
  auto ledger = Open("demo", [&](absl::string_view act) { acts.emplace_back(act); }).value();
  acts.clear();
  ASSERT_EQ(ledger->Commit(MakeCommit(4), UpdateOf(4), {}), absl::OkStatus());
  EXPECT_THAT(acts, ::testing::ElementsAre("fsync of updates/4-0", "rename of updates/4-0",
                                           "fsync of folder updates", "commit of round 4"));
  acts.clear();
  ASSERT_EQ(ledger->AddSnapshot(MakeSnapshotInfo(4), MakeSnapshotValues(4), 1), absl::OkStatus());
  EXPECT_THAT(acts, ::testing::ElementsAre("fsync of snapshots/4.safetensors",
                                           "rename of snapshots/4.safetensors", "fsync of folder snapshots",
                                           "commit of the snapshot of round 4", "removal of updates/1-0",
                                           "removal of updates/2-0", "removal of updates/3-0",
                                           "removal of updates/4-0", "removal of snapshots/0.safetensors"));
}

TEST_F(SqliteLedgerTest, ADirectoryThatCannotBeMadeIsTheUsersToPutRight) {
  Overwrite(path_ + "/plain", "a file");
  const auto ledger = SqliteLedger::Open({path_ + "/plain/state", "demo", nullptr}, table_);
  EXPECT_EQ(ledger.status(), absl::FailedPreconditionError("state directory " + path_ +
                                                           "/plain/state cannot be used: " + path_ +
                                                           "/plain/state: Not a directory"));
  EXPECT_EQ(SqliteLedger::Open({path_ + "/plain", "demo", nullptr}, table_).status(),
            absl::FailedPreconditionError("state directory " + path_ + "/plain cannot be used: " + path_ +
                                          "/plain: Not a directory"));
}

TEST_F(SqliteLedgerTest, ALedgerThatIsAFolderIsTheUsersToPutRight) {
  std::filesystem::create_directories(path_ + "/odd/ledger.sqlite");
  const auto ledger = SqliteLedger::Open({path_ + "/odd", "demo", nullptr}, table_);
  EXPECT_EQ(ledger.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(ledger.status()),
              HasSubstr("state directory " + path_ + "/odd cannot be used: " + path_ +
                        "/odd/ledger.sqlite: unable to open database file"));
}

}  // namespace
}  // namespace isthmus
