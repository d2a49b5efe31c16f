// A ledger that also remembers every update it was given, so that a check can read it after it was pruned.
#ifndef ISTHMUS_DAEMON_APP_SIM_RECORDING_LEDGER_H_
#define ISTHMUS_DAEMON_APP_SIM_RECORDING_LEDGER_H_

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "daemon/store/ledger.h"

namespace isthmus {

// By the digest in the commit record (16 bytes).
using UpdateBytes = std::map<std::string, std::string>;

// Not thread-safe. `updates` must outlive it. Subclasses plant defects.
class RecordingLedger : public Ledger {
 public:
  RecordingLedger(std::unique_ptr<Ledger> ledger, UpdateBytes* updates)
      : ledger_(std::move(ledger)), updates_(updates) {}

  absl::Status Begin(const RunRecord& run) override { return ledger_->Begin(run); }
  absl::StatusOr<LedgerState> Load() override { return ledger_->Load(); }
  absl::Status Write(const LedgerWrite& write) override { return ledger_->Write(write); }
  absl::Status Commit(const CommitRecord& record, absl::string_view update,
                      const LedgerWrite& also) override {
    (*updates_)[record.update_digest()] = std::string(update);
    return ledger_->Commit(record, update, also);
  }
  absl::Status AddSnapshot(SnapshotInfo info, const SnapshotValues& values, int keep) override {
    return ledger_->AddSnapshot(std::move(info), values, keep);
  }
  absl::StatusOr<std::shared_ptr<const BlobSource>> OpenBlob(const BlobName& name) override {
    return ledger_->OpenBlob(name);
  }
  int64_t DiskBytes() const override { return ledger_->DiskBytes(); }

 protected:
  const std::unique_ptr<Ledger> ledger_;
  UpdateBytes* const updates_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_SIM_RECORDING_LEDGER_H_
