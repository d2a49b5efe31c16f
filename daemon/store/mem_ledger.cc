#include "daemon/store/mem_ledger.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"
#include "daemon/store/blobs.h"
#include "daemon/store/packed_snapshot.h"
#include "daemon/store/snapshot.h"

namespace isthmus {
namespace {

absl::Status NoRun() { return absl::NotFoundError("the state directory holds no run"); }

}  // namespace

absl::Status MemDisk::Prepare() {
  if (crash_at_ >= 0 && durable_writes_ >= crash_at_) is_crashed_ = true;
  if (is_crashed_) return absl::UnavailableError("the process died before this write");
  return absl::OkStatus();
}

absl::Status MemDisk::Count() {
  ++durable_writes_;
  if (durable_writes_ == crash_at_) is_crashed_ = true;
  if (is_crashed_) return absl::UnavailableError("the process died after this write");
  return absl::OkStatus();
}

MemLedger::MemLedger(std::shared_ptr<MemDisk> disk, std::shared_ptr<const TensorTable> table)
    : disk_(std::move(disk)), table_(std::move(table)), process_(++disk_->process_) {
  disk_->is_crashed_ = false;
  disk_->crash_at_ = -1;
  if (disk_->has_run_) ++disk_->openings_of_run_;
  DropUnreferencedFiles();
}

absl::Status MemLedger::CheckAlive() const {
  if (disk_->is_crashed_) return absl::UnavailableError("the process died");
  if (disk_->process_ != process_) {
    return absl::UnavailableError("the state directory was opened by another process");
  }
  return absl::OkStatus();
}

absl::Status MemLedger::CheckWritable() const {
  ISTHMUS_RETURN_IF_ERROR(CheckAlive());
  return disk_->refusal_;
}

absl::Status MemLedger::Begin(const RunRecord& run) {
  ISTHMUS_RETURN_IF_ERROR(CheckWritable());
  if (disk_->has_run_) {
    return absl::AlreadyExistsError(absl::StrCat("the state directory holds run ", disk_->run_.run_id));
  }
  ISTHMUS_RETURN_IF_ERROR(disk_->Prepare());
  disk_->has_run_ = true;
  disk_->openings_of_run_ = 1;
  disk_->run_ = run;
  return disk_->Count();
}

absl::StatusOr<LedgerState> MemLedger::Load() {
  ISTHMUS_RETURN_IF_ERROR(CheckAlive());
  if (!disk_->has_run_) return NoRun();
  LedgerState state;
  state.run = disk_->run_;
  for (const auto& [key, record] : disk_->commits_) state.commits.push_back(record);
  for (const auto& [key, record] : disk_->aborts_) state.aborts.push_back(record);
  state.events = disk_->events_;
  for (auto it = disk_->openings_.begin(); it != disk_->openings_.end(); ++it) {
    const auto& [round, fragment, attempt] = it->first;
    const auto next = std::next(it);
    const bool is_newest = next == disk_->openings_.end() || std::get<0>(next->first) != round ||
                           std::get<1>(next->first) != fragment;
    const bool is_over = disk_->commits_.count({round, fragment}) > 0 || disk_->aborts_.count(it->first) > 0;
    if (is_newest && !is_over) state.open.push_back(it->second);
  }
  for (const auto& [round, info] : disk_->snapshots_) state.snapshots.push_back(info);
  state.lease_rows = disk_->lease_rows_;
  state.incarnations.assign(disk_->incarnations_.begin(), disk_->incarnations_.end());
  state.restarts = disk_->openings_of_run_ - 1;
  return state;
}

void MemLedger::Apply(const LedgerWrite& write) {
  for (const OpeningRecord& opening : write.openings) {
    disk_->openings_[{opening.key().round(), opening.key().fragment(), opening.attempt()}] = opening;
  }
  for (const AbortRecord& abort : write.aborts) {
    disk_->aborts_[{abort.key().round(), abort.key().fragment(), abort.attempt()}] = abort;
  }
  disk_->events_.insert(disk_->events_.end(), write.events.begin(), write.events.end());
  if (write.lease_rows != nullptr) disk_->lease_rows_ = *write.lease_rows;
  for (const auto& [site, incarnation] : write.incarnations) disk_->incarnations_[site] = incarnation;
  if (!write.data_digest.empty()) {
    disk_->run_.data_digest = write.data_digest;
    disk_->run_.data_sequences = write.data_sequences;
  }
  if (write.run_file != nullptr) disk_->run_.run_file = *write.run_file;
}

absl::Status MemLedger::Write(const LedgerWrite& write) {
  ISTHMUS_RETURN_IF_ERROR(CheckWritable());
  if (!disk_->has_run_) return NoRun();
  if (write.empty()) return absl::OkStatus();
  ISTHMUS_RETURN_IF_ERROR(disk_->Prepare());
  Apply(write);
  return disk_->Count();
}

absl::Status MemLedger::Commit(const CommitRecord& record, absl::string_view update,
                               const LedgerWrite& also) {
  ISTHMUS_RETURN_IF_ERROR(CheckWritable());
  if (!disk_->has_run_) return NoRun();
  const MemDisk::RoundFragment key(record.key().round(), record.key().fragment());
  if (disk_->commits_.count(key) > 0) {
    return absl::AlreadyExistsError(
        absl::StrCat("round ", key.first, " fragment ", key.second, " is committed"));
  }
  ISTHMUS_RETURN_IF_ERROR(disk_->Prepare());
  if (!also.residual.empty()) {
    disk_->residual_files_[key] = std::make_shared<const std::string>(also.residual);
    ISTHMUS_RETURN_IF_ERROR(disk_->Count());
  }
  disk_->update_files_[key] = std::make_shared<const std::string>(update);
  ISTHMUS_RETURN_IF_ERROR(disk_->Count());
  disk_->commits_[key] = record;
  Apply(also);
  ISTHMUS_RETURN_IF_ERROR(disk_->Count());
  DropUnreferencedFiles();
  return absl::OkStatus();
}

absl::Status MemLedger::AddSnapshot(SnapshotInfo info, const SnapshotValues& values, int keep) {
  ISTHMUS_RETURN_IF_ERROR(CheckWritable());
  if (!disk_->has_run_) return NoRun();
  ISTHMUS_ASSIGN_OR_RETURN(std::string bytes, EncodeSnapshot(*table_, info, values));
  info.set_bytes(static_cast<int64_t>(bytes.size()));
  info.set_has_momentum(!values.momentum.empty());
  info.set_packed_bytes(0);
  std::string packed;
  if (IsPacked(info.codec())) {
    ISTHMUS_RETURN_IF_ERROR(WritePackedSnapshot(*table_, info, values, [&packed](absl::string_view piece) {
      packed.append(piece.data(), piece.size());
      return absl::OkStatus();
    }));
    info.set_packed_bytes(static_cast<int64_t>(packed.size()));
  }
  ISTHMUS_RETURN_IF_ERROR(disk_->Prepare());
  disk_->packed_files_[info.round()] = std::make_shared<const std::string>(std::move(packed));
  disk_->snapshot_files_[info.round()] = std::make_shared<const std::string>(std::move(bytes));
  ISTHMUS_RETURN_IF_ERROR(disk_->Count());
  disk_->snapshots_[info.round()] = info;
  while (static_cast<int>(disk_->snapshots_.size()) > std::max(keep, 1)) {
    disk_->snapshots_.erase(disk_->snapshots_.begin());
  }
  ISTHMUS_RETURN_IF_ERROR(disk_->Count());
  DropUnreferencedFiles();
  return absl::OkStatus();
}

void MemLedger::DropUnreferencedFiles() {
  auto& snapshots = disk_->snapshot_files_;
  for (auto it = snapshots.begin(); it != snapshots.end();) {
    if (disk_->snapshots_.count(it->first) > 0) {
      ++it;
      continue;
    }
    disk_->packed_files_.erase(it->first);
    it = snapshots.erase(it);
  }
  // Of the newest two commits.
  auto& residuals = disk_->residual_files_;
  for (auto it = residuals.begin(); it != residuals.end();) {
    const auto commit = disk_->commits_.find(it->first);
    const bool is_needed =
        commit != disk_->commits_.end() && std::distance(commit, disk_->commits_.end()) <= 2;
    it = is_needed ? std::next(it) : residuals.erase(it);
  }
  const int64_t oldest = disk_->snapshots_.empty() ? -1 : disk_->snapshots_.begin()->first;
  auto& updates = disk_->update_files_;
  for (auto it = updates.begin(); it != updates.end();) {
    const bool is_needed = disk_->commits_.count(it->first) > 0 && it->first.first > oldest;
    it = is_needed ? std::next(it) : updates.erase(it);
  }
}

absl::StatusOr<std::shared_ptr<const BlobSource>> MemLedger::OpenBlob(const BlobName& name) {
  ISTHMUS_RETURN_IF_ERROR(CheckAlive());
  SharedBytes bytes;
  if (name.kind == UPDATE) {
    const MemDisk::RoundFragment key(name.round, name.fragment);
    const auto it = disk_->update_files_.find(key);
    if (it != disk_->update_files_.end() && disk_->commits_.count(key) > 0) bytes = it->second;
  } else if (name.kind == SNAPSHOT) {
    const auto it = disk_->snapshot_files_.find(name.round);
    if (it != disk_->snapshot_files_.end() && disk_->snapshots_.count(name.round) > 0) bytes = it->second;
  } else if (name.kind == PACKED_SNAPSHOT) {
    const auto it = disk_->snapshots_.find(name.round);
    if (it != disk_->snapshots_.end() && it->second.packed_bytes() > 0)
      bytes = disk_->packed_files_[name.round];
  } else if (name.kind == RESIDUAL) {
    const MemDisk::RoundFragment key(name.round, name.fragment);
    const auto it = disk_->residual_files_.find(key);
    if (it != disk_->residual_files_.end() && disk_->commits_.count(key) > 0) bytes = it->second;
  }
  if (bytes == nullptr) {
    return absl::NotFoundError(absl::StrCat(BlobKind_Name(name.kind), " of round ", name.round, " fragment ",
                                            name.fragment, " is not kept"));
  }
  return std::make_shared<const MemoryBlob>(std::move(bytes));
}

int64_t MemLedger::DiskBytes() const {
  int64_t bytes = 0;
  for (const auto& [key, file] : disk_->update_files_) bytes += static_cast<int64_t>(file->size());
  for (const auto* files : {&disk_->snapshot_files_, &disk_->packed_files_}) {
    for (const auto& [key, file] : *files) bytes += static_cast<int64_t>(file->size());
  }
  for (const auto& [key, file] : disk_->residual_files_) bytes += static_cast<int64_t>(file->size());
  return bytes;
}

}  // namespace isthmus
