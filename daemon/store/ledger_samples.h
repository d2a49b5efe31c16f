// Records for the ledgers' tests: small, and each round's different from the others'.
#ifndef ISTHMUS_DAEMON_STORE_LEDGER_SAMPLES_H_
#define ISTHMUS_DAEMON_STORE_LEDGER_SAMPLES_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/base/digest.h"
#include "daemon/store/ledger.h"
#include "daemon/training/tensor_table.h"

namespace isthmus {

// A fresh folder of the test's own, in memory where that is offered: a killed process loses nothing there
// that it would keep on a disk, and a test of a thousand syncs does not wait for one. The caller removes it.
inline std::string FreshFolder() {
  const std::string memory = "/dev/shm";
  std::string path =
      absl::StrCat(access(memory.c_str(), W_OK) == 0 ? memory : ::testing::TempDir(), "/ledger-XXXXXX");
  EXPECT_NE(mkdtemp(path.data()), nullptr);
  return path;
}

inline std::shared_ptr<const TensorTable> ConformanceTable() {
  return std::make_shared<const TensorTable>(
      TensorTable::FromTensors({{"weight", {2, 3}, TensorInit::kNormal, 0.02, true}, {"bias", {2}}}).value());
}

inline RunRecord ConformanceRun() {
  RunRecord run;
  run.run_id = "run-1";
  run.run_file.set_name("demo");
  run.run_file.mutable_rounds()->set_total_rounds(40);
  run.layout_digest = 0xFEDCBA9876543210;
  run.protocol_version = 1;
  run.codec = "dense(bits=24)|zstd(1)";
  return run;
}

inline OpeningRecord MakeOpening(int64_t round, int64_t attempt = 1) {
  OpeningRecord opening;
  opening.mutable_key()->set_round(round);
  opening.set_view_id(round + 100);
  opening.set_attempt(attempt);
  Life* life = opening.add_members();
  life->set_site("paris");
  life->set_incarnation(1);
  return opening;
}

inline std::string UpdateOf(int64_t round) { return absl::StrCat("update of round ", round); }

inline std::string ResidualOf(int64_t round) { return absl::StrCat("residual after round ", round); }

// A commit's company with a residual, which must outlive it.
inline LedgerWrite WithResidual(absl::string_view residual) {
  LedgerWrite also;
  also.residual = residual;
  return also;
}

inline CommitRecord MakeCommit(int64_t round) {
  CommitRecord record;
  record.mutable_key()->set_round(round);
  record.set_view_id(round + 100);
  record.set_schedule_step(30 * round);
  record.set_outer_rate_bits(0x3F800000);
  record.set_update_bytes(static_cast<int64_t>(UpdateOf(round).size()));
  record.set_update_digest(DigestOf(UpdateOf(round)).ToBytes());
  record.set_reason("all arrived");
  IncludedContribution* included = record.add_included();
  included->mutable_life()->set_site("paris");
  included->set_weight(64);
  return record;
}

inline LeaseRow MakeLeaseRow(const std::string& site, int64_t number, int64_t begin, int64_t end) {
  LeaseRow row;
  row.set_kind(2);
  row.mutable_life()->set_site(site);
  row.set_number(number);
  row.set_begin(begin);
  row.set_end(end);
  return row;
}

inline SnapshotInfo MakeSnapshotInfo(int64_t round) {
  SnapshotInfo info;
  info.set_round(round);
  info.set_schedule_step(30 * round);
  return info;
}

// One that travels packed.
inline SnapshotInfo MakePackedSnapshotInfo(int64_t round) {
  SnapshotInfo info = MakeSnapshotInfo(round);
  info.set_codec("fp32|zstd(3)");
  return info;
}

inline SnapshotValues MakeSnapshotValues(int64_t round) {
  SnapshotValues values;
  for (int i = 0; i < 8; ++i) values.anchor.push_back(static_cast<float>(round) + 0.125f * i);
  return values;
}

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_STORE_LEDGER_SAMPLES_H_
