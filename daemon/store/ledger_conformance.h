// What every Ledger must do, whatever it is made of. A test instantiates it with a factory:
//   INSTANTIATE_TYPED_TEST_SUITE_P(Mem, LedgerConformance, MemDirectory);
// where a directory offers `std::unique_ptr<Ledger> Open()` (one more start on the same durable state) and a
// constructor taking the tensor table.
#ifndef ISTHMUS_DAEMON_STORE_LEDGER_CONFORMANCE_H_
#define ISTHMUS_DAEMON_STORE_LEDGER_CONFORMANCE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/store/blobs.h"
#include "daemon/store/ledger.h"
#include "daemon/store/ledger_samples.h"
#include "daemon/store/packed_snapshot.h"
#include "daemon/store/snapshot.h"
#include "daemon/training/tensor_table.h"

namespace isthmus {

template <typename Directory>
class LedgerConformance : public ::testing::Test {
 protected:
  // A started run.
  std::unique_ptr<Ledger> Started() {
    std::unique_ptr<Ledger> ledger = directory_.Open();
    EXPECT_EQ(ledger->Begin(ConformanceRun()), absl::OkStatus());
    return ledger;
  }
  std::unique_ptr<Ledger> Reopen(std::unique_ptr<Ledger> old) {
    old.reset();
    return directory_.Open();
  }
  static LedgerState MustLoad(Ledger* ledger) {
    absl::StatusOr<LedgerState> state = ledger->Load();
    EXPECT_EQ(state.status(), absl::OkStatus());
    return state.ok() ? *std::move(state) : LedgerState();
  }
  static std::string ReadUpdate(Ledger* ledger, int64_t round) {
    auto blob = ledger->OpenBlob({UPDATE, round, 0});
    if (!blob.ok()) return std::string(absl::StatusCodeToString(blob.status().code()));
    return ReadWhole(**blob).value();
  }

  std::shared_ptr<const TensorTable> table_ = ConformanceTable();
  Directory directory_{table_};
};

TYPED_TEST_SUITE_P(LedgerConformance);

TYPED_TEST_P(LedgerConformance, AnEmptyLedgerHasNoRunAndTakesNoWrites) {
  auto ledger = this->directory_.Open();
  EXPECT_EQ(ledger->Load().status().code(), absl::StatusCode::kNotFound);
  LedgerWrite write;
  write.openings.push_back(MakeOpening(1));
  EXPECT_EQ(ledger->Write(write).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ledger->Commit(MakeCommit(1), "x", {}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ledger->AddSnapshot(MakeSnapshotInfo(0), MakeSnapshotValues(0), 3).code(),
            absl::StatusCode::kNotFound);
}

TYPED_TEST_P(LedgerConformance, ARunBegunIsThereAfterAReopenAndCannotBeginTwice) {
  auto ledger = this->Started();
  EXPECT_EQ(this->MustLoad(ledger.get()).restarts, 0);
  EXPECT_EQ(ledger->Begin(ConformanceRun()).code(), absl::StatusCode::kAlreadyExists);
  ledger = this->Reopen(std::move(ledger));
  const LedgerState state = this->MustLoad(ledger.get());
  EXPECT_EQ(state.run.run_id, "run-1");
  EXPECT_EQ(state.run.run_file.SerializeAsString(), ConformanceRun().run_file.SerializeAsString());
  EXPECT_EQ(state.run.layout_digest, 0xFEDCBA9876543210);
  EXPECT_EQ(state.run.protocol_version, 1);
  EXPECT_EQ(state.run.codec, "dense(bits=24)|zstd(1)");
  EXPECT_EQ(state.run.data_digest, "");
  EXPECT_EQ(state.restarts, 1);
  ledger = this->Reopen(std::move(ledger));
  EXPECT_EQ(this->MustLoad(ledger.get()).restarts, 2);
}

TYPED_TEST_P(LedgerConformance, ARoundIsOpenUntilItCommitsOrAborts) {
  auto ledger = this->Started();
  LedgerWrite first;
  first.openings.push_back(MakeOpening(1));
  ASSERT_EQ(ledger->Write(first), absl::OkStatus());
  LedgerState state = this->MustLoad(ledger.get());
  ASSERT_EQ(state.open.size(), 1u);
  EXPECT_EQ(state.open[0].view_id(), 101);

  LedgerWrite next;
  next.openings.push_back(MakeOpening(2));
  ASSERT_EQ(ledger->Commit(MakeCommit(1), UpdateOf(1), next), absl::OkStatus());
  ledger = this->Reopen(std::move(ledger));
  state = this->MustLoad(ledger.get());
  ASSERT_EQ(state.commits.size(), 1u);
  EXPECT_EQ(state.commits[0].SerializeAsString(), MakeCommit(1).SerializeAsString());
  ASSERT_EQ(state.open.size(), 1u);
  EXPECT_EQ(state.open[0].key().round(), 2);

  LedgerWrite abort;
  abort.aborts.emplace_back();
  abort.aborts[0].mutable_key()->set_round(2);
  abort.aborts[0].set_attempt(1);
  abort.aborts[0].set_reason("too few");
  ASSERT_EQ(ledger->Write(abort), absl::OkStatus());
  state = this->MustLoad(ledger.get());
  EXPECT_TRUE(state.open.empty());
  ASSERT_EQ(state.aborts.size(), 1u);
  EXPECT_EQ(state.aborts[0].reason(), "too few");
}

TYPED_TEST_P(LedgerConformance, AnAbortedRoundCanBeOpenedOnceMoreAsASecondAttempt) {
  auto ledger = this->Started();
  LedgerWrite write;
  write.openings.push_back(MakeOpening(1, 1));
  ASSERT_EQ(ledger->Write(write), absl::OkStatus());
  LedgerWrite again;
  again.aborts.emplace_back();
  again.aborts[0].mutable_key()->set_round(1);
  again.aborts[0].set_attempt(1);
  again.openings.push_back(MakeOpening(1, 2));
  ASSERT_EQ(ledger->Write(again), absl::OkStatus());
  const LedgerState state = this->MustLoad(ledger.get());
  ASSERT_EQ(state.open.size(), 1u);
  EXPECT_EQ(state.open[0].attempt(), 2);
}

TYPED_TEST_P(LedgerConformance, ACommitIsReadableByteForByteAndHappensOnce) {
  auto ledger = this->Started();
  ASSERT_EQ(ledger->Commit(MakeCommit(1), UpdateOf(1), {}), absl::OkStatus());
  EXPECT_EQ(ledger->Commit(MakeCommit(1), "other bytes", {}).code(), absl::StatusCode::kAlreadyExists);
  ledger = this->Reopen(std::move(ledger));
  EXPECT_EQ(this->ReadUpdate(ledger.get(), 1), UpdateOf(1));
  EXPECT_EQ(this->ReadUpdate(ledger.get(), 2), "NOT_FOUND");
}

TYPED_TEST_P(LedgerConformance, FragmentsOfOneRoundAreCommittedApart) {
  auto ledger = this->Started();
  CommitRecord other = MakeCommit(1);
  other.mutable_key()->set_fragment(1);
  ASSERT_EQ(ledger->Commit(MakeCommit(1), UpdateOf(1), {}), absl::OkStatus());
  ASSERT_EQ(ledger->Commit(other, UpdateOf(1), {}), absl::OkStatus());
  const LedgerState state = this->MustLoad(ledger.get());
  ASSERT_EQ(state.commits.size(), 2u);
  EXPECT_EQ(state.commits[1].key().fragment(), 1);
}

TYPED_TEST_P(LedgerConformance, LeaseRowsAreReplacedAsAWholeAndLeftAloneWhenNotGiven) {
  auto ledger = this->Started();
  const std::vector<LeaseRow> many = {MakeLeaseRow("rome", 1, 20, 30), MakeLeaseRow("oslo", 1, 0, 10),
                                      MakeLeaseRow("oslo", 2, 10, 20)};
  LedgerWrite write;
  write.lease_rows = &many;
  ASSERT_EQ(ledger->Write(write), absl::OkStatus());
  LedgerWrite other;
  other.incarnations = {{"oslo", 1}};
  ASSERT_EQ(ledger->Write(other), absl::OkStatus());
  ledger = this->Reopen(std::move(ledger));
  LedgerState state = this->MustLoad(ledger.get());
  ASSERT_EQ(state.lease_rows.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(state.lease_rows[i].SerializeAsString(), many[i].SerializeAsString()) << "order is kept";
  }
  const std::vector<LeaseRow> few = {MakeLeaseRow("oslo", 2, 15, 20)};
  const std::vector<LeaseRow> none;
  write.lease_rows = &few;
  ASSERT_EQ(ledger->Write(write), absl::OkStatus());
  state = this->MustLoad(ledger.get());
  ASSERT_EQ(state.lease_rows.size(), 1u);
  EXPECT_EQ(state.lease_rows[0].begin(), 15);
  write.lease_rows = &none;
  ASSERT_EQ(ledger->Write(write), absl::OkStatus());
  EXPECT_TRUE(this->MustLoad(ledger.get()).lease_rows.empty());
}

TYPED_TEST_P(LedgerConformance, EventsIncarnationsDataDigestAndRunFileAreKept) {
  auto ledger = this->Started();
  LedgerWrite write;
  for (int i = 0; i < 3; ++i) {
    write.events.emplace_back();
    write.events.back().set_kind(EventRecord::JOINED);
    write.events.back().set_round(3 - i);
  }
  write.incarnations = {{"oslo", 1}, {"rome", 1}};
  write.data_digest = std::string(16, '\x7F');
  write.data_sequences = 1234;
  ASSERT_EQ(ledger->Write(write), absl::OkStatus());
  RunFile changed = ConformanceRun().run_file;
  changed.mutable_rounds()->set_total_rounds(80);
  LedgerWrite later;
  later.incarnations = {{"oslo", 2}};
  later.run_file = &changed;
  ASSERT_EQ(ledger->Write(later), absl::OkStatus());
  ledger = this->Reopen(std::move(ledger));
  const LedgerState state = this->MustLoad(ledger.get());
  ASSERT_EQ(state.events.size(), 3u);
  EXPECT_EQ(state.events[0].round(), 3) << "oldest first";
  EXPECT_EQ(state.events[2].round(), 1);
  EXPECT_THAT(state.incarnations, ::testing::ElementsAre(std::make_pair(std::string("oslo"), int64_t{2}),
                                                         std::make_pair(std::string("rome"), int64_t{1})));
  EXPECT_EQ(state.run.data_digest, std::string(16, '\x7F'));
  EXPECT_EQ(state.run.data_sequences, 1234);
  EXPECT_EQ(state.run.run_file.rounds().total_rounds(), 80);
}

TYPED_TEST_P(LedgerConformance, ASnapshotReadsBackWithItsValues) {
  auto ledger = this->Started();
  SnapshotValues values = MakeSnapshotValues(4);
  values.momentum = MakeSnapshotValues(7).anchor;
  ASSERT_EQ(ledger->AddSnapshot(MakeSnapshotInfo(4), values, 3), absl::OkStatus());
  ledger = this->Reopen(std::move(ledger));
  const LedgerState state = this->MustLoad(ledger.get());
  ASSERT_EQ(state.snapshots.size(), 1u);
  auto blob = ledger->OpenBlob({SNAPSHOT, 4, 0});
  ASSERT_EQ(blob.status(), absl::OkStatus());
  EXPECT_EQ((*blob)->size(), state.snapshots[0].bytes());
  EXPECT_TRUE(state.snapshots[0].has_momentum());
  const absl::StatusOr<Snapshot> snapshot = ReadSnapshot(*this->table_, **blob);
  ASSERT_EQ(snapshot.status(), absl::OkStatus());
  EXPECT_EQ(snapshot->values.anchor, values.anchor);
  EXPECT_EQ(snapshot->values.momentum, values.momentum);
  EXPECT_EQ(snapshot->info.SerializeAsString(), state.snapshots[0].SerializeAsString());
}

TYPED_TEST_P(LedgerConformance, OldSnapshotsAndTheUpdatesBeforeTheOldestKeptAreGone) {
  auto ledger = this->Started();
  ASSERT_EQ(ledger->AddSnapshot(MakeSnapshotInfo(0), MakeSnapshotValues(0), 2), absl::OkStatus());
  for (int64_t round = 1; round <= 6; ++round) {
    ASSERT_EQ(ledger->Commit(MakeCommit(round), UpdateOf(round), {}), absl::OkStatus());
    if (round % 2 == 0) {
      ASSERT_EQ(ledger->AddSnapshot(MakeSnapshotInfo(round), MakeSnapshotValues(round), 2), absl::OkStatus());
    }
  }
  for (int pass = 0; pass < 2; ++pass) {
    const LedgerState state = this->MustLoad(ledger.get());
    ASSERT_EQ(state.snapshots.size(), 2u);
    EXPECT_EQ(state.snapshots[0].round(), 4);
    EXPECT_EQ(state.snapshots[1].round(), 6);
    EXPECT_EQ(state.commits.size(), 6u) << "records stay";
    EXPECT_EQ(this->ReadUpdate(ledger.get(), 4), "NOT_FOUND");
    EXPECT_EQ(this->ReadUpdate(ledger.get(), 5), UpdateOf(5));
    EXPECT_EQ(this->ReadUpdate(ledger.get(), 6), UpdateOf(6));
    EXPECT_EQ(ledger->OpenBlob({SNAPSHOT, 2, 0}).status().code(), absl::StatusCode::kNotFound);
    ledger = this->Reopen(std::move(ledger));
  }
}

TYPED_TEST_P(LedgerConformance, ABlobStaysReadableAfterItIsPruned) {
  auto ledger = this->Started();
  ASSERT_EQ(ledger->AddSnapshot(MakeSnapshotInfo(0), MakeSnapshotValues(0), 1), absl::OkStatus());
  ASSERT_EQ(ledger->Commit(MakeCommit(1), UpdateOf(1), {}), absl::OkStatus());
  auto update = ledger->OpenBlob({UPDATE, 1, 0});
  auto snapshot = ledger->OpenBlob({SNAPSHOT, 0, 0});
  ASSERT_TRUE(update.ok() && snapshot.ok());
  ASSERT_EQ(ledger->AddSnapshot(MakeSnapshotInfo(1), MakeSnapshotValues(1), 1), absl::OkStatus());
  EXPECT_EQ(this->ReadUpdate(ledger.get(), 1), "NOT_FOUND");
  EXPECT_EQ(ReadWhole(**update).value(), UpdateOf(1));
  EXPECT_EQ(ReadSnapshot(*this->table_, **snapshot)->values.anchor, MakeSnapshotValues(0).anchor);
}

TYPED_TEST_P(LedgerConformance, TheResidualsOfTheNewestTwoCommitsAreKept) {
  auto ledger = this->Started();
  const auto residual = [&](int64_t round) -> std::string {
    auto blob = ledger->OpenBlob({RESIDUAL, round, 0});
    if (!blob.ok()) return std::string(absl::StatusCodeToString(blob.status().code()));
    return ReadWhole(**blob).value();
  };
  for (int64_t round = 1; round <= 4; ++round) {
    ASSERT_EQ(ledger->Commit(MakeCommit(round), UpdateOf(round), WithResidual(ResidualOf(round))),
              absl::OkStatus());
  }
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(residual(2), "NOT_FOUND");
    EXPECT_EQ(residual(3), ResidualOf(3));
    EXPECT_EQ(residual(4), ResidualOf(4));
    ledger = this->Reopen(std::move(ledger));
  }
  // A commit that is refused changes none.
  EXPECT_EQ(ledger->Commit(MakeCommit(4), "other bytes", WithResidual("other")).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(residual(4), ResidualOf(4));
  // One without a residual ages the others all the same.
  ASSERT_EQ(ledger->Commit(MakeCommit(5), UpdateOf(5), {}), absl::OkStatus());
  ledger = this->Reopen(std::move(ledger));
  EXPECT_EQ(residual(3), "NOT_FOUND");
  EXPECT_EQ(residual(4), ResidualOf(4));
  EXPECT_EQ(residual(5), "NOT_FOUND");
}

TYPED_TEST_P(LedgerConformance, ASnapshotThatTravelsPackedIsThereInBothForms) {
  auto ledger = this->Started();
  ASSERT_EQ(ledger->AddSnapshot(MakeSnapshotInfo(0), MakeSnapshotValues(0), 3), absl::OkStatus());
  ASSERT_EQ(ledger->AddSnapshot(MakePackedSnapshotInfo(1), MakeSnapshotValues(1), 3), absl::OkStatus());
  for (int pass = 0; pass < 2; ++pass) {
    const LedgerState state = this->MustLoad(ledger.get());
    ASSERT_EQ(state.snapshots.size(), 2u);
    EXPECT_EQ(state.snapshots[0].packed_bytes(), 0);
    EXPECT_EQ(ledger->OpenBlob({PACKED_SNAPSHOT, 0, 0}).status().code(), absl::StatusCode::kNotFound);
    auto plain = ledger->OpenBlob({SNAPSHOT, 1, 0}), packed = ledger->OpenBlob({PACKED_SNAPSHOT, 1, 0});
    ASSERT_TRUE(plain.ok() && packed.ok());
    EXPECT_EQ((*packed)->size(), state.snapshots[1].packed_bytes());
    const auto back = UnpackSnapshot(*this->table_, state.snapshots[1], ReadWhole(**packed).value());
    ASSERT_EQ(back.status(), absl::OkStatus());
    EXPECT_EQ(*back, ReadWhole(**plain).value());
    ledger = this->Reopen(std::move(ledger));
  }
  ASSERT_EQ(ledger->AddSnapshot(MakeSnapshotInfo(2), MakeSnapshotValues(2), 1), absl::OkStatus());
  EXPECT_EQ(ledger->OpenBlob({PACKED_SNAPSHOT, 1, 0}).status().code(), absl::StatusCode::kNotFound);
  SnapshotInfo lossy = MakePackedSnapshotInfo(3);
  lossy.set_codec("bf16");
  EXPECT_EQ(ledger->AddSnapshot(lossy, MakeSnapshotValues(3), 3).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(this->MustLoad(ledger.get()).snapshots.size(), 1u);
}

TYPED_TEST_P(LedgerConformance, ASnapshotOfTheWrongSizeIsRefusedAndLeavesNothing) {
  auto ledger = this->Started();
  SnapshotValues values = MakeSnapshotValues(1);
  values.anchor.pop_back();
  EXPECT_EQ(ledger->AddSnapshot(MakeSnapshotInfo(1), values, 1).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(this->MustLoad(ledger.get()).snapshots.empty());
  EXPECT_EQ(ledger->OpenBlob({SNAPSHOT, 1, 0}).status().code(), absl::StatusCode::kNotFound);
}

TYPED_TEST_P(LedgerConformance, DiskBytesGrowWithAnUpdateAndShrinkWithAPrune) {
  auto ledger = this->Started();
  ASSERT_EQ(ledger->AddSnapshot(MakeSnapshotInfo(0), MakeSnapshotValues(0), 1), absl::OkStatus());
  const int64_t before = ledger->DiskBytes();
  CommitRecord record = MakeCommit(1);
  const std::string update(1 << 20, 'u');
  record.set_update_bytes(static_cast<int64_t>(update.size()));
  record.set_update_digest(DigestOf(update).ToBytes());
  ASSERT_EQ(ledger->Commit(record, update, {}), absl::OkStatus());
  EXPECT_GE(ledger->DiskBytes(), before + (1 << 20));
  ASSERT_EQ(ledger->AddSnapshot(MakeSnapshotInfo(1), MakeSnapshotValues(1), 1), absl::OkStatus());
  EXPECT_LT(ledger->DiskBytes(), before + (1 << 20));
}

REGISTER_TYPED_TEST_SUITE_P(
    LedgerConformance, AnEmptyLedgerHasNoRunAndTakesNoWrites, ARunBegunIsThereAfterAReopenAndCannotBeginTwice,
    ARoundIsOpenUntilItCommitsOrAborts, AnAbortedRoundCanBeOpenedOnceMoreAsASecondAttempt,
    ACommitIsReadableByteForByteAndHappensOnce, FragmentsOfOneRoundAreCommittedApart,
    LeaseRowsAreReplacedAsAWholeAndLeftAloneWhenNotGiven, EventsIncarnationsDataDigestAndRunFileAreKept,
    ASnapshotReadsBackWithItsValues, OldSnapshotsAndTheUpdatesBeforeTheOldestKeptAreGone,
    ABlobStaysReadableAfterItIsPruned, TheResidualsOfTheNewestTwoCommitsAreKept,
    ASnapshotThatTravelsPackedIsThereInBothForms, ASnapshotOfTheWrongSizeIsRefusedAndLeavesNothing,
    DiskBytesGrowWithAnUpdateAndShrinkWithAPrune);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_STORE_LEDGER_CONFORMANCE_H_
