// The Ledger seam: what happened in a run, made durable before anyone is told (ROUNDS §7).
//
// A kill at any instant leaves either a round still open, or a round committed with its bytes. Real: SQLite
// (WAL, synchronous=FULL) and files in a state directory; fake: memory that forgets what was not made
// durable. Not thread-safe: used by one task at a time.
#ifndef ISTHMUS_DAEMON_STORE_LEDGER_H_
#define ISTHMUS_DAEMON_STORE_LEDGER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/exchange/transport.h"
#include "protos/records.pb.h"
#include "protos/run.pb.h"

namespace isthmus {

// One row of the run itself; written when the run begins.
struct RunRecord {
  std::string run_id;
  RunFile run_file;  // with every default filled in
  uint64_t layout_digest = 0;
  std::string data_digest;  // SHARED: set by the first site; empty before
  int64_t data_sequences = 0;
  int64_t protocol_version = 0;
  std::string codec;  // resolved codec spec
};

// Everything a restarted coordinator needs.
struct LedgerState {
  RunRecord run;
  std::vector<CommitRecord> commits;  // by round
  std::vector<AbortRecord> aborts;
  std::vector<EventRecord> events;      // oldest first
  std::vector<OpeningRecord> open;      // opened, neither committed nor aborted
  std::vector<SnapshotInfo> snapshots;  // by round; complete ones only
  std::vector<LeaseRow> lease_rows;     // whole state of the data leases, as last recorded
  std::vector<std::pair<std::string, int64_t>> incarnations;  // newest per site
  int64_t restarts = 0;  // times this directory was opened for this run before
};

// One durable act: everything in it is there after a crash, or nothing.
struct LedgerWrite {
  std::vector<OpeningRecord> openings;
  std::vector<AbortRecord> aborts;
  std::vector<EventRecord> events;
  const std::vector<LeaseRow>* lease_rows = nullptr;  // not null: replaces the whole state of the data leases
  std::vector<std::pair<std::string, int64_t>> incarnations;
  std::string data_digest;  // not empty: sets the run's
  int64_t data_sequences = 0;
  RunFile* run_file = nullptr;  // not null: replaces the run's (fields that are safe to change)
  // Commit only: what the hub still carries after it, little-endian fp32; empty: nothing.
  absl::string_view residual;

  bool empty() const {
    return openings.empty() && aborts.empty() && events.empty() && lease_rows == nullptr &&
           incarnations.empty() && data_digest.empty() && run_file == nullptr;
  }
};

// Values of a snapshot: the anchor, and the outer momentum or nothing.
struct SnapshotValues {
  std::vector<float> anchor;
  std::vector<float> momentum;
};

class Ledger {
 public:
  virtual ~Ledger() = default;

  // Starts a run in an empty ledger. ALREADY_EXISTS when it holds one.
  virtual absl::Status Begin(const RunRecord& run) = 0;

  // NOT_FOUND: empty. FAILED_PRECONDITION: written by a newer version, named. DATA_LOSS: damaged.
  virtual absl::StatusOr<LedgerState> Load() = 0;

  // RESOURCE_EXHAUSTED: the disk is full; UNAVAILABLE: read-only or gone. Nothing is half-written.
  virtual absl::Status Write(const LedgerWrite& write) = 0;

  // The residual's bytes if there are any, then the update's (each: file, fsync, rename, fsync of the
  // folder), then the record and `also` in one transaction; the residuals of the newest two commits are kept.
  // ALREADY_EXISTS when the round and fragment are committed. Errors as Write.
  virtual absl::Status Commit(const CommitRecord& record, absl::string_view update,
                              const LedgerWrite& also) = 0;

  // Writes a snapshot, and its packed form when info.codec asks for one, then prunes: `keep` snapshots stay
  // (never the newest away), with the updates after the oldest of them. `info.bytes` and `info.packed_bytes`
  // are filled in by the ledger.
  virtual absl::Status AddSnapshot(SnapshotInfo info, const SnapshotValues& values, int keep) = 0;

  // An update, a snapshot in either form, or a committed round's residual. NOT_FOUND when pruned or never
  // written. A source stays readable after its file is pruned.
  virtual absl::StatusOr<std::shared_ptr<const BlobSource>> OpenBlob(const BlobName& name) = 0;

  // Bytes on disk now.
  virtual int64_t DiskBytes() const = 0;
};

// A snapshot blob (safetensors) as values; sizes must fit the table it was written with.
// INVALID_ARGUMENT: malformed, or another model's. Treats input as hostile. Declared in snapshot.h beside the
// writer.

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_STORE_LEDGER_H_
