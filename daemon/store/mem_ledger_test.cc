#include "daemon/store/mem_ledger.h"

#include "daemon/store/ledger_conformance.h"

namespace isthmus {
namespace {

class MemDirectory {
 public:
  explicit MemDirectory(std::shared_ptr<const TensorTable> table) : table_(std::move(table)) {}
  std::unique_ptr<Ledger> Open() { return std::make_unique<MemLedger>(disk_, table_); }

 private:
  std::shared_ptr<const TensorTable> table_;
  std::shared_ptr<MemDisk> disk_ = std::make_shared<MemDisk>();
};

INSTANTIATE_TYPED_TEST_SUITE_P(Mem, LedgerConformance, MemDirectory);

class MemLedgerTest : public ::testing::Test {
 protected:
  std::shared_ptr<MemDisk> disk_ = std::make_shared<MemDisk>();
  std::shared_ptr<const TensorTable> table_ = ConformanceTable();
};

TEST_F(MemLedgerTest, ACrashBetweenFileAndRecordLeavesTheRoundOpen) {
  MemLedger ledger(disk_, table_);
  ASSERT_EQ(ledger.Begin(ConformanceRun()), absl::OkStatus());
  LedgerWrite write;
  write.openings.push_back(MakeOpening(1));
  ASSERT_EQ(ledger.Write(write), absl::OkStatus());
  disk_->CrashAfter(1);
  EXPECT_EQ(ledger.Commit(MakeCommit(1), UpdateOf(1), {}).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ledger.Load().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(disk_->is_crashed());

  MemLedger again(disk_, table_);
  const LedgerState state = again.Load().value();
  EXPECT_TRUE(state.commits.empty());
  EXPECT_EQ(state.open.size(), 1u);
  EXPECT_EQ(again.DiskBytes(), 0) << "the update without a record is gone";
  EXPECT_EQ(again.Commit(MakeCommit(1), UpdateOf(1), {}), absl::OkStatus());
}

TEST_F(MemLedgerTest, ACrashAfterTheRecordLeavesTheRoundCommittedThoughNobodyWasTold) {
  MemLedger ledger(disk_, table_);
  ASSERT_EQ(ledger.Begin(ConformanceRun()), absl::OkStatus());
  disk_->CrashAfter(2);
  EXPECT_EQ(ledger.Commit(MakeCommit(1), UpdateOf(1), {}).code(), absl::StatusCode::kUnavailable);
  MemLedger again(disk_, table_);
  EXPECT_EQ(again.Load()->commits.size(), 1u);
  EXPECT_TRUE(again.OpenBlob({UPDATE, 1, 0}).ok());
}

TEST_F(MemLedgerTest, ACrashAfterZeroWritesLeavesNothingOfTheNextOne) {
  MemLedger ledger(disk_, table_);
  ASSERT_EQ(ledger.Begin(ConformanceRun()), absl::OkStatus());
  disk_->CrashAfter(0);
  LedgerWrite write;
  write.incarnations = {{"oslo", 1}};
  EXPECT_EQ(ledger.Write(write).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(disk_->durable_writes(), 1);
  MemLedger again(disk_, table_);
  EXPECT_TRUE(again.Load()->incarnations.empty());
}

TEST_F(MemLedgerTest, ACrashInASnapshotKeepsTheOldOnes) {
  MemLedger ledger(disk_, table_);
  ASSERT_EQ(ledger.Begin(ConformanceRun()), absl::OkStatus());
  ASSERT_EQ(ledger.AddSnapshot(MakeSnapshotInfo(0), MakeSnapshotValues(0), 1), absl::OkStatus());
  disk_->CrashAfter(1);
  EXPECT_EQ(ledger.AddSnapshot(MakeSnapshotInfo(5), MakeSnapshotValues(5), 1).code(),
            absl::StatusCode::kUnavailable);
  MemLedger again(disk_, table_);
  const LedgerState state = again.Load().value();
  ASSERT_EQ(state.snapshots.size(), 1u);
  EXPECT_EQ(state.snapshots[0].round(), 0);
  EXPECT_TRUE(again.OpenBlob({SNAPSHOT, 0, 0}).ok());
}

TEST_F(MemLedgerTest, ARefusedWriteLeavesNothingAndWorksOnceTheDiskHasRoom) {
  MemLedger ledger(disk_, table_);
  ASSERT_EQ(ledger.Begin(ConformanceRun()), absl::OkStatus());
  disk_->RefuseWrites(absl::ResourceExhaustedError("disk full"));
  EXPECT_EQ(ledger.Commit(MakeCommit(1), UpdateOf(1), {}).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(ledger.Load()->commits.empty());
  disk_->RefuseWrites(absl::OkStatus());
  EXPECT_EQ(ledger.Commit(MakeCommit(1), UpdateOf(1), {}), absl::OkStatus());
}

TEST_F(MemLedgerTest, ANewProcessOnTheDiskEndsTheOldOne) {
  MemLedger old(disk_, table_);
  ASSERT_EQ(old.Begin(ConformanceRun()), absl::OkStatus());
  MemLedger now(disk_, table_);
  EXPECT_EQ(old.Write({}).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(now.Load()->restarts, 1);
}

}  // namespace
}  // namespace isthmus
