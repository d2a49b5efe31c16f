#include "daemon/store/sqlite_ledger.h"

#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/base/digest.h"
#include "daemon/base/status.h"
#include "daemon/store/blobs.h"
#include "daemon/store/ledger_rows.h"
#include "daemon/store/packed_snapshot.h"
#include "daemon/store/snapshot.h"

namespace isthmus {
namespace {

constexpr char kUpdates[] = "updates";
constexpr char kSnapshots[] = "snapshots";
constexpr char kResiduals[] = "residuals";
constexpr char kDatabase[] = "ledger.sqlite";

std::string UpdateFile(int64_t round, int32_t fragment) {
  return absl::StrCat(kUpdates, "/", round, "-", fragment);
}

std::string ResidualFile(int64_t round, int32_t fragment) {
  return absl::StrCat(kResiduals, "/", round, "-", fragment);
}

std::string PackedFile(int64_t round) { return absl::StrCat(kSnapshots, "/", round, ".packed"); }

std::string SnapshotFile(int64_t round) { return absl::StrCat(kSnapshots, "/", round, ".safetensors"); }

// A blob whose size must be the recorded one; a missing file is then damage, not a question of pruning.
absl::StatusOr<std::shared_ptr<const BlobSource>> OpenRecorded(const std::string& path, int64_t bytes) {
  absl::StatusOr<std::shared_ptr<const BlobSource>> blob = FileBlob::Open(path);
  if (absl::IsNotFound(blob.status())) return absl::DataLossError(std::string(blob.status().message()));
  if (!blob.ok()) return blob.status();
  if ((*blob)->size() != bytes) {
    return absl::DataLossError(
        absl::StrCat(path, ": has ", (*blob)->size(), " bytes, the ledger says ", bytes));
  }
  return blob;
}

absl::Status NotKept(absl::string_view what, int64_t round, int32_t fragment) {
  return absl::NotFoundError(absl::StrCat(what, " of round ", round, " fragment ", fragment, " is not kept"));
}

}  // namespace

SqliteLedger::SqliteLedger(std::unique_ptr<StateDirectory> directory, std::unique_ptr<Database> database,
                           std::shared_ptr<const TensorTable> table)
    : directory_(std::move(directory)), database_(std::move(database)), table_(std::move(table)) {}

absl::StatusOr<std::unique_ptr<SqliteLedger>> SqliteLedger::Open(SqliteLedgerOptions options,
                                                                 std::shared_ptr<const TensorTable> table) {
  const std::string path = options.directory;
  absl::StatusOr<std::unique_ptr<SqliteLedger>> ledger = OpenDirectory(std::move(options), std::move(table));
  // What cannot be opened or written from the start is the user's to put right, unlike a disk that gives out.
  if (!absl::IsUnavailable(ledger.status()) && !absl::IsNotFound(ledger.status())) return ledger;
  return absl::FailedPreconditionError(
      absl::StrCat("state directory ", path, " cannot be used: ", ledger.status().message()));
}

absl::StatusOr<std::unique_ptr<SqliteLedger>> SqliteLedger::OpenDirectory(
    SqliteLedgerOptions options, std::shared_ptr<const TensorTable> table) {
  ISTHMUS_ASSIGN_OR_RETURN(
      std::unique_ptr<StateDirectory> directory,
      StateDirectory::Open(options.directory, {kUpdates, kSnapshots, kResiduals}, std::move(options.hook)));
  ISTHMUS_ASSIGN_OR_RETURN(std::unique_ptr<Database> database, Database::Open(directory->PathOf(kDatabase)));
  std::unique_ptr<SqliteLedger> ledger(
      new SqliteLedger(std::move(directory), std::move(database), std::move(table)));
  StateDirectory& files = *ledger->directory_;
  ISTHMUS_RETURN_IF_ERROR(PrepareTables(ledger->database_.get(), files.path(),
                                        [&] { files.hook()("commit of the ledger's tables"); }));
  ISTHMUS_RETURN_IF_ERROR(files.SyncFolder(""));
  ISTHMUS_RETURN_IF_ERROR(ledger->CheckNoRecordsAreLost());
  ISTHMUS_ASSIGN_OR_RETURN(Statement run, ledger->database_->Prepare("SELECT name FROM run"));
  ISTHMUS_ASSIGN_OR_RETURN(const bool has_run, run.Step());
  if (!has_run) return ledger;
  const std::string name = run.ColumnBytes(0);
  if (!options.run_name.empty() && name != options.run_name) {
    return absl::FailedPreconditionError(absl::StrCat("state directory ", files.path(), " holds run \"", name,
                                                      "\", not \"", options.run_name, "\""));
  }
  ISTHMUS_RETURN_IF_ERROR(run.Run());  // ends the reading, so that it can be written
  ISTHMUS_RETURN_IF_ERROR(ledger->SweepFiles());
  ISTHMUS_RETURN_IF_ERROR(ledger->CountStart());
  return ledger;
}

absl::Status SqliteLedger::InTransaction(absl::string_view what, const std::function<absl::Status()>& body) {
  return database_->Transaction(body, [&] { directory_->hook()(absl::StrCat("commit of ", what)); });
}

absl::Status SqliteLedger::CountStart() {
  return InTransaction("a start", [&] { return database_->Execute("UPDATE run SET starts = starts + 1"); });
}

absl::Status SqliteLedger::CheckHasRun() const {
  ISTHMUS_ASSIGN_OR_RETURN(const int64_t runs, database_->QueryInt("SELECT count(*) FROM run"));
  if (runs > 0) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("state directory ", directory_->path(), " holds no run"));
}

absl::Status SqliteLedger::Begin(const RunRecord& run) {
  const absl::Status has_run = CheckHasRun();
  if (has_run.ok()) {
    return absl::AlreadyExistsError(absl::StrCat("state directory ", directory_->path(), " holds a run"));
  }
  if (!absl::IsNotFound(has_run)) return has_run;
  return InTransaction("the run", [&] { return InsertRun(database_.get(), run); });
}

absl::StatusOr<LedgerState> SqliteLedger::Load() {
  ISTHMUS_ASSIGN_OR_RETURN(LedgerState state, ReadState(*database_, directory_->path()));
  ISTHMUS_RETURN_IF_ERROR(CheckUpdates(state));
  ISTHMUS_RETURN_IF_ERROR(CheckSnapshots(state));
  return state;
}

absl::Status SqliteLedger::CheckUpdates(const LedgerState& state) const {
  const int64_t oldest = state.snapshots.empty() ? -1 : state.snapshots.front().round();
  for (const CommitRecord& commit : state.commits) {
    if (commit.key().round() <= oldest) continue;
    const std::string path = directory_->PathOf(UpdateFile(commit.key().round(), commit.key().fragment()));
    ISTHMUS_ASSIGN_OR_RETURN(const std::shared_ptr<const BlobSource> blob,
                             OpenRecorded(path, commit.update_bytes()));
    if (commit.update_digest().empty()) continue;
    ISTHMUS_ASSIGN_OR_RETURN(const std::string bytes, ReadWhole(*blob));
    if (DigestOf(bytes).ToBytes() != commit.update_digest()) {
      return absl::DataLossError(absl::StrCat(path, ": is damaged, its digest is not the one of round ",
                                              commit.key().round(), "'s commit"));
    }
  }
  return absl::OkStatus();
}

absl::Status SqliteLedger::CheckSnapshots(const LedgerState& state) const {
  for (const SnapshotInfo& info : state.snapshots) {
    const auto blob = OpenRecorded(directory_->PathOf(SnapshotFile(info.round())), info.bytes());
    if (!blob.ok()) return blob.status();
    if (info.packed_bytes() == 0) continue;
    const auto packed = OpenRecorded(directory_->PathOf(PackedFile(info.round())), info.packed_bytes());
    if (!packed.ok()) return packed.status();
  }
  return absl::OkStatus();
}

absl::Status SqliteLedger::Write(const LedgerWrite& write) {
  ISTHMUS_RETURN_IF_ERROR(CheckHasRun());
  if (write.empty()) return absl::OkStatus();
  return InTransaction("records", [&] { return ApplyWrite(database_.get(), write); });
}

absl::Status SqliteLedger::Commit(const CommitRecord& record, absl::string_view update,
                                  const LedgerWrite& also) {
  ISTHMUS_RETURN_IF_ERROR(CheckHasRun());
  const int64_t round = record.key().round();
  const int32_t fragment = record.key().fragment();
  ISTHMUS_ASSIGN_OR_RETURN(const int64_t committed, database_->QueryInt(absl::StrCat(
                                                        "SELECT count(*) FROM commits WHERE round = ", round,
                                                        " AND fragment = ", fragment)));
  if (committed > 0) {
    return absl::AlreadyExistsError(absl::StrCat("round ", round, " fragment ", fragment, " is committed"));
  }
  const std::string file = UpdateFile(round, fragment), residual = ResidualFile(round, fragment);
  if (!also.residual.empty()) ISTHMUS_RETURN_IF_ERROR(directory_->WriteFile(residual, also.residual));
  if (absl::Status s = directory_->WriteFile(file, update); !s.ok()) {
    if (!also.residual.empty()) directory_->RemoveFile(residual).IgnoreError();
    return s;
  }
  const absl::Status status = InTransaction(absl::StrCat("round ", round), [&]() -> absl::Status {
    ISTHMUS_RETURN_IF_ERROR(InsertCommit(database_.get(), record));
    return ApplyWrite(database_.get(), also);
  });
  // Room on a full disk comes first; but a record that may yet turn up needs its file.
  if (!status.ok() && !database_->is_outcome_unknown()) {
    directory_->RemoveFile(file).IgnoreError();
    if (!also.residual.empty()) directory_->RemoveFile(residual).IgnoreError();
  }
  // The commit is durable whatever becomes of older residuals.
  if (status.ok() && !also.residual.empty()) SweepResiduals().IgnoreError();
  return status;
}

absl::Status SqliteLedger::WriteSnapshotFiles(const SnapshotValues& values, SnapshotInfo* info) {
  info->set_has_momentum(!values.momentum.empty());
  info->set_bytes(SnapshotBytes(*table_, *info, values));
  info->set_packed_bytes(0);
  ISTHMUS_RETURN_IF_ERROR(directory_->WriteFile(
      SnapshotFile(info->round()),
      [&](const StateDirectory::ByteSink& sink) { return WriteSnapshot(*table_, *info, values, sink); }));
  if (!IsPacked(info->codec())) return absl::OkStatus();
  int64_t packed = 0;
  ISTHMUS_RETURN_IF_ERROR(
      directory_->WriteFile(PackedFile(info->round()), [&](const StateDirectory::ByteSink& sink) {
        return WritePackedSnapshot(*table_, *info, values, [&](absl::string_view piece) {
          packed += static_cast<int64_t>(piece.size());
          return sink(piece);
        });
      }));
  info->set_packed_bytes(packed);
  return absl::OkStatus();
}

absl::Status SqliteLedger::AddSnapshot(SnapshotInfo info, const SnapshotValues& values, int keep) {
  ISTHMUS_RETURN_IF_ERROR(CheckHasRun());
  if (absl::Status s = WriteSnapshotFiles(values, &info); !s.ok()) {
    // The plain form, when there was no room for the packed one; records that may yet turn up keep theirs.
    if (!database_->is_outcome_unknown()) SweepFiles().IgnoreError();
    return s;
  }
  const absl::Status status = InTransaction(absl::StrCat("the snapshot of round ", info.round()),
                                            [&] { return InsertSnapshot(database_.get(), info, keep); });
  if (!status.ok()) {
    // Best effort as in Commit: sweeping removes it unless an older record of this round needs it.
    if (!database_->is_outcome_unknown()) SweepFiles().IgnoreError();
    return status;
  }
  // The snapshot is durable whatever becomes of old files; what cannot be removed now is swept at the next
  // start.
  SweepFiles().IgnoreError();
  return absl::OkStatus();
}

absl::StatusOr<int64_t> SqliteLedger::OldestSnapshot() const {
  return database_->QueryInt("SELECT coalesce(min(round), -1) FROM snapshots");
}

absl::Status SqliteLedger::CheckNoRecordsAreLost() const {
  ISTHMUS_ASSIGN_OR_RETURN(
      const int64_t newest,
      database_->QueryInt(
          "SELECT coalesce(max(round), 0) FROM (SELECT round FROM openings UNION ALL SELECT round "
          "FROM commits UNION ALL SELECT round FROM aborts UNION ALL SELECT round FROM snapshots)"));
  for (const char* folder : {kUpdates, kSnapshots, kResiduals}) {
    for (const std::string& name : directory_->List(folder)) {
      int64_t round = 0;
      const absl::string_view number =
          absl::string_view(name).substr(0, name.find_first_not_of("0123456789"));
      if (!absl::SimpleAtoi(number, &round) || round <= newest + 1) continue;
      return absl::DataLossError(
          absl::StrCat("state directory ", directory_->path(), ": ", folder, "/", name,
                       " is there, but the records in ", kDatabase, " end with round ", newest,
                       "; it or its -wal file is damaged or was not copied with the rest"));
    }
  }
  return absl::OkStatus();
}

absl::Status SqliteLedger::SweepFiles() {
  ISTHMUS_ASSIGN_OR_RETURN(const int64_t oldest, OldestSnapshot());
  std::set<std::string> needed;
  ISTHMUS_ASSIGN_OR_RETURN(
      Statement commits,
      database_->Prepare(absl::StrCat("SELECT round, fragment FROM commits WHERE round > ", oldest)));
  while (true) {
    ISTHMUS_ASSIGN_OR_RETURN(const bool has_row, commits.Step());
    if (!has_row) break;
    needed.insert(UpdateFile(commits.ColumnInt(0), static_cast<int32_t>(commits.ColumnInt(1))));
  }
  ISTHMUS_ASSIGN_OR_RETURN(Statement snapshots, database_->Prepare("SELECT round FROM snapshots"));
  while (true) {
    ISTHMUS_ASSIGN_OR_RETURN(const bool has_row, snapshots.Step());
    if (!has_row) break;
    needed.insert(SnapshotFile(snapshots.ColumnInt(0)));
    needed.insert(PackedFile(snapshots.ColumnInt(0)));
  }
  for (const char* folder : {kUpdates, kSnapshots}) {
    for (const std::string& name : directory_->List(folder)) {
      const std::string file = absl::StrCat(folder, "/", name);
      if (needed.count(file) == 0) ISTHMUS_RETURN_IF_ERROR(directory_->RemoveFile(file));
    }
  }
  return SweepResiduals();
}

absl::StatusOr<std::set<std::string>> SqliteLedger::NeededResiduals() const {
  std::set<std::string> needed;
  ISTHMUS_ASSIGN_OR_RETURN(
      Statement commits,
      database_->Prepare("SELECT round, fragment FROM commits ORDER BY round DESC, fragment DESC LIMIT 2"));
  while (true) {
    ISTHMUS_ASSIGN_OR_RETURN(const bool has_row, commits.Step());
    if (!has_row) return needed;
    needed.insert(ResidualFile(commits.ColumnInt(0), static_cast<int32_t>(commits.ColumnInt(1))));
  }
}

absl::Status SqliteLedger::SweepResiduals() {
  ISTHMUS_ASSIGN_OR_RETURN(const std::set<std::string> needed, NeededResiduals());
  for (const std::string& name : directory_->List(kResiduals)) {
    const std::string file = absl::StrCat(kResiduals, "/", name);
    if (needed.count(file) == 0) ISTHMUS_RETURN_IF_ERROR(directory_->RemoveFile(file));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const BlobSource>> SqliteLedger::OpenSnapshot(const BlobName& name) {
  ISTHMUS_ASSIGN_OR_RETURN(Statement row,
                           database_->Prepare("SELECT bytes, record FROM snapshots WHERE round = ?"));
  ISTHMUS_ASSIGN_OR_RETURN(const bool is_kept, row.Int(name.round).Step());
  if (!is_kept) return NotKept("snapshot", name.round, name.fragment);
  if (name.kind == SNAPSHOT) {
    return OpenRecorded(directory_->PathOf(SnapshotFile(name.round)), row.ColumnInt(0));
  }
  SnapshotInfo info;
  if (!info.ParseFromString(row.ColumnBytes(1)) || info.packed_bytes() == 0) {
    return NotKept("packed snapshot", name.round, name.fragment);
  }
  return OpenRecorded(directory_->PathOf(PackedFile(name.round)), info.packed_bytes());
}

absl::StatusOr<std::shared_ptr<const BlobSource>> SqliteLedger::OpenBlob(const BlobName& name) {
  if (name.kind == SNAPSHOT || name.kind == PACKED_SNAPSHOT) return OpenSnapshot(name);
  if (name.kind == RESIDUAL) {
    const std::string file = ResidualFile(name.round, name.fragment);
    ISTHMUS_ASSIGN_OR_RETURN(const std::set<std::string> needed, NeededResiduals());
    if (needed.count(file) == 0) return NotKept("residual", name.round, name.fragment);
    return FileBlob::Open(directory_->PathOf(file));
  }
  ISTHMUS_ASSIGN_OR_RETURN(const int64_t oldest, OldestSnapshot());
  ISTHMUS_ASSIGN_OR_RETURN(
      Statement row, database_->Prepare("SELECT update_bytes FROM commits WHERE round = ? AND fragment = ?"));
  ISTHMUS_ASSIGN_OR_RETURN(const bool is_committed, row.Int(name.round).Int(name.fragment).Step());
  if (name.kind != UPDATE || !is_committed || name.round <= oldest) {
    return NotKept("update", name.round, name.fragment);
  }
  return OpenRecorded(directory_->PathOf(UpdateFile(name.round, name.fragment)), row.ColumnInt(0));
}

int64_t SqliteLedger::DiskBytes() const { return directory_->Bytes(); }

}  // namespace isthmus
