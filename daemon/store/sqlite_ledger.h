// The ledger on disk: a state directory with a SQLite database for records and plain files for updates and
// snapshots.
//
//   ledger.sqlite            records: key columns and the message as it was written (WAL, synchronous=FULL)
//   updates/ROUND-FRAGMENT   an update's bytes
//   snapshots/ROUND.safetensors
//   snapshots/ROUND.packed   the same as it travels, when the run file asks for that
//   residuals/ROUND-FRAGMENT what the hub carried after a commit; of the newest two
//   lock                     held while a process uses the directory
//
// A file is there before its record is; what has no record is swept away when the directory is opened. A kill
// leaves at most the file of one round more than the records know. Files of later rounds mean that records
// were lost (the database or its -wal was damaged, or not copied with the rest): then nothing is swept and
// the directory is refused.
#ifndef ISTHMUS_DAEMON_STORE_SQLITE_LEDGER_H_
#define ISTHMUS_DAEMON_STORE_SQLITE_LEDGER_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/store/ledger.h"
#include "daemon/store/sqlite.h"
#include "daemon/store/state_directory.h"
#include "daemon/training/tensor_table.h"

namespace isthmus {

struct SqliteLedgerOptions {
  std::string directory;
  // A directory that holds a run of another name is refused; empty takes any.
  std::string run_name;
  // Called before each durable act, for tests that die there.
  DurableHook hook;
};

// See Ledger.
class SqliteLedger : public Ledger {
 public:
  // Makes the directory where it is missing; a run in it counts one more start.
  // FAILED_PRECONDITION: in use by another process (named), from a newer version (both named), of another run
  // (both named), a database of something else, or not to be used: read-only, not allowed, not a folder.
  // DATA_LOSS: damaged. RESOURCE_EXHAUSTED: disk full. All name the path.
  static absl::StatusOr<std::unique_ptr<SqliteLedger>> Open(SqliteLedgerOptions options,
                                                            std::shared_ptr<const TensorTable> table);

  // ALREADY_EXISTS names the run that is there.
  absl::Status Begin(const RunRecord& run) override;
  // Also reads every update that is kept and compares its digest with the commit's.
  absl::StatusOr<LedgerState> Load() override;
  absl::Status Write(const LedgerWrite& write) override;
  absl::Status Commit(const CommitRecord& record, absl::string_view update, const LedgerWrite& also) override;
  absl::Status AddSnapshot(SnapshotInfo info, const SnapshotValues& values, int keep) override;
  // DATA_LOSS when a file that should be there is missing or has another size.
  absl::StatusOr<std::shared_ptr<const BlobSource>> OpenBlob(const BlobName& name) override;
  int64_t DiskBytes() const override;

 private:
  static absl::StatusOr<std::unique_ptr<SqliteLedger>> OpenDirectory(
      SqliteLedgerOptions options, std::shared_ptr<const TensorTable> table);
  SqliteLedger(std::unique_ptr<StateDirectory> directory, std::unique_ptr<Database> database,
               std::shared_ptr<const TensorTable> table);

  absl::Status CheckHasRun() const;
  absl::Status InTransaction(absl::string_view what, const std::function<absl::Status()>& body);
  absl::Status CountStart();
  // Rounds up to this one have no update any more; −1 without a snapshot.
  absl::StatusOr<int64_t> OldestSnapshot() const;
  absl::Status CheckUpdates(const LedgerState& state) const;
  absl::Status CheckSnapshots(const LedgerState& state) const;
  // DATA_LOSS when files are of rounds that the records do not reach.
  absl::Status CheckNoRecordsAreLost() const;
  absl::Status SweepFiles();
  // The residuals that belong to the newest two commits.
  absl::StatusOr<std::set<std::string>> NeededResiduals() const;
  absl::Status SweepResiduals();
  // Their sizes are filled in. What is left of a failure is swept later.
  absl::Status WriteSnapshotFiles(const SnapshotValues& values, SnapshotInfo* info);
  absl::StatusOr<std::shared_ptr<const BlobSource>> OpenSnapshot(const BlobName& name);

  std::unique_ptr<StateDirectory> directory_;
  std::unique_ptr<Database> database_;
  std::shared_ptr<const TensorTable> table_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_STORE_SQLITE_LEDGER_H_
