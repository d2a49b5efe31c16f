// A ledger in memory, for simulations and tests: a disk that outlives the ledger, and can crash or refuse.
#ifndef ISTHMUS_DAEMON_STORE_MEM_LEDGER_H_
#define ISTHMUS_DAEMON_STORE_MEM_LEDGER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/store/ledger.h"
#include "daemon/training/tensor_table.h"

namespace isthmus {

// What is durable. Held by the test; each MemLedger made on it is one start of a process on that directory.
// Not thread-safe.
class MemDisk {
 public:
  // The process dies right after `writes` more durable writes (0: before the next one): the call in which
  // that happens, and every later one, is UNAVAILABLE until a new MemLedger is made. A Begin or Write is one
  // durable write; a Commit or AddSnapshot two, the file and then the record, and a Commit with a residual
  // three. What a dead process had not
  // recorded is gone when the next one opens the disk.
  void CrashAfter(int64_t writes) { crash_at_ = durable_writes_ + writes; }

  // Until set back to OK, every write fails with `status` and leaves nothing (a full or read-only disk).
  void RefuseWrites(absl::Status status) { refusal_ = std::move(status); }

  bool is_crashed() const { return is_crashed_; }
  bool is_accepting_writes() const { return refusal_.ok(); }
  int64_t durable_writes() const { return durable_writes_; }

 private:
  friend class MemLedger;

  using RoundFragment = std::pair<int64_t, int32_t>;

  absl::Status Prepare();
  // Counts one durable write that was just made; UNAVAILABLE when the process dies of it.
  absl::Status Count();

  bool has_run_ = false;
  int64_t openings_of_run_ = 0;  // processes that opened this disk with a run on it
  RunRecord run_;
  std::map<RoundFragment, CommitRecord> commits_;
  std::map<std::tuple<int64_t, int32_t, int64_t>, AbortRecord> aborts_;  // by round, fragment, attempt
  std::map<std::tuple<int64_t, int32_t, int64_t>, OpeningRecord> openings_;
  std::vector<EventRecord> events_;
  std::vector<LeaseRow> lease_rows_;
  std::map<std::string, int64_t> incarnations_;
  std::map<int64_t, SnapshotInfo> snapshots_;
  std::map<RoundFragment, SharedBytes> update_files_;
  std::map<RoundFragment, SharedBytes> residual_files_;
  std::map<int64_t, SharedBytes> snapshot_files_, packed_files_;

  int64_t durable_writes_ = 0;
  int64_t crash_at_ = -1;  // −1: never
  bool is_crashed_ = false;
  absl::Status refusal_;
  int64_t process_ = 0;  // the newest ledger's number; older ones are dead
};

// See Ledger. Making one on a disk kills the ledgers made on it before.
class MemLedger : public Ledger {
 public:
  MemLedger(std::shared_ptr<MemDisk> disk, std::shared_ptr<const TensorTable> table);

  absl::Status Begin(const RunRecord& run) override;
  absl::StatusOr<LedgerState> Load() override;
  absl::Status Write(const LedgerWrite& write) override;
  absl::Status Commit(const CommitRecord& record, absl::string_view update, const LedgerWrite& also) override;
  absl::Status AddSnapshot(SnapshotInfo info, const SnapshotValues& values, int keep) override;
  absl::StatusOr<std::shared_ptr<const BlobSource>> OpenBlob(const BlobName& name) override;
  int64_t DiskBytes() const override;

 private:
  // Not OK when this process is dead, or the disk refuses, or there is no run yet.
  absl::Status CheckAlive() const;
  absl::Status CheckWritable() const;
  void Apply(const LedgerWrite& write);
  void DropUnreferencedFiles();

  std::shared_ptr<MemDisk> disk_;
  std::shared_ptr<const TensorTable> table_;
  int64_t process_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_STORE_MEM_LEDGER_H_
