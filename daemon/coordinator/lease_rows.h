// The data leases' whole state as ledger rows, and back.
#ifndef ISTHMUS_DAEMON_COORDINATOR_LEASE_ROWS_H_
#define ISTHMUS_DAEMON_COORDINATOR_LEASE_ROWS_H_

#include <vector>

#include "daemon/rounds/data_leases.h"
#include "protos/records.pb.h"

namespace isthmus {

inline std::vector<LeaseRow> ToRows(const std::vector<LeaseRecord>& records) {
  std::vector<LeaseRow> rows;
  rows.reserve(records.size());
  for (const LeaseRecord& r : records) {
    LeaseRow row;
    row.set_kind(static_cast<int>(r.kind));
    row.mutable_life()->set_site(r.life.name);
    row.mutable_life()->set_incarnation(r.life.incarnation);
    row.set_number(r.number);
    row.set_pass(r.pass);
    row.set_begin(r.begin);
    row.set_end(r.end);
    if (!r.frame.is_zero()) row.set_frame(r.frame.ToBytes());
    rows.push_back(std::move(row));
  }
  return rows;
}

// Rows of an unknown kind or with a bad digest are kept as they are: Import finds the contradiction.
inline std::vector<LeaseRecord> FromRows(const std::vector<LeaseRow>& rows) {
  std::vector<LeaseRecord> records;
  records.reserve(rows.size());
  for (const LeaseRow& row : rows) {
    LeaseRecord r;
    r.kind = static_cast<LeaseRecord::Kind>(row.kind());
    r.life = {row.life().site(), row.life().incarnation()};
    r.number = row.number();
    r.pass = row.pass();
    r.begin = row.begin();
    r.end = row.end();
    if (absl::StatusOr<Digest> d = DigestFromBytes(row.frame()); d.ok()) r.frame = *d;
    records.push_back(r);
  }
  return records;
}

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_COORDINATOR_LEASE_ROWS_H_
