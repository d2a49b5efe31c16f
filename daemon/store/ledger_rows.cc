#include "daemon/store/ledger_rows.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"

namespace isthmus {
namespace {

// "Isth": marks the file as ours in SQLite's header.
constexpr int64_t kApplicationId = 0x49737468;

constexpr char kTables[] = R"(
CREATE TABLE run (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  name TEXT NOT NULL,
  run_id TEXT NOT NULL,
  run_file BLOB NOT NULL,
  layout_digest INTEGER NOT NULL,
  data_digest BLOB NOT NULL,
  data_sequences INTEGER NOT NULL,
  protocol_version INTEGER NOT NULL,
  codec TEXT NOT NULL,
  starts INTEGER NOT NULL
);
CREATE TABLE openings (
  round INTEGER, fragment INTEGER, attempt INTEGER, view_id INTEGER, record BLOB NOT NULL,
  PRIMARY KEY (round, fragment, attempt)
) WITHOUT ROWID;
CREATE TABLE commits (
  round INTEGER, fragment INTEGER, view_id INTEGER, schedule_step INTEGER, included INTEGER, total_weight INTEGER,
  outer_rate_bits INTEGER, base_digest BLOB, update_digest BLOB, update_bytes INTEGER, state_digest BLOB,
  reason TEXT, record BLOB NOT NULL,
  PRIMARY KEY (round, fragment)
) WITHOUT ROWID;
CREATE TABLE aborts (
  round INTEGER, fragment INTEGER, attempt INTEGER, reason TEXT, record BLOB NOT NULL,
  PRIMARY KEY (round, fragment, attempt)
) WITHOUT ROWID;
CREATE TABLE events (
  id INTEGER PRIMARY KEY, kind INTEGER, site TEXT, incarnation INTEGER, round INTEGER, reason TEXT,
  record BLOB NOT NULL
);
CREATE TABLE lease_rows (id INTEGER PRIMARY KEY, site TEXT, number INTEGER, record BLOB NOT NULL);
CREATE TABLE incarnations (site TEXT PRIMARY KEY, incarnation INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE snapshots (round INTEGER PRIMARY KEY, bytes INTEGER, record BLOB NOT NULL);
)";

absl::Status Damaged(absl::string_view directory, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("state directory ", directory, " is damaged: ", what));
}

template <typename Record>
absl::Status ReadRecords(const Database& database, absl::string_view table, absl::string_view sql,
                         const std::string& directory, std::vector<Record>* out) {
  ISTHMUS_ASSIGN_OR_RETURN(Statement rows, database.Prepare(sql));
  while (true) {
    ISTHMUS_ASSIGN_OR_RETURN(const bool has_row, rows.Step());
    if (!has_row) return absl::OkStatus();
    Record record;
    if (!record.ParseFromString(rows.ColumnBytes(0))) {
      return Damaged(directory, absl::StrCat("a row of ", table, " cannot be read"));
    }
    out->push_back(std::move(record));
  }
}

absl::Status ReadRun(const Database& database, const std::string& directory, LedgerState* state) {
  ISTHMUS_ASSIGN_OR_RETURN(
      Statement row, database.Prepare("SELECT run_id, run_file, layout_digest, data_digest, data_sequences,"
                                      " protocol_version, codec, starts FROM run"));
  ISTHMUS_ASSIGN_OR_RETURN(const bool has_run, row.Step());
  if (!has_run) return absl::NotFoundError(absl::StrCat("state directory ", directory, " holds no run"));
  RunRecord& run = state->run;
  run.run_id = row.ColumnBytes(0);
  if (!run.run_file.ParseFromString(row.ColumnBytes(1)))
    return Damaged(directory, "the run file cannot be read");
  run.layout_digest = static_cast<uint64_t>(row.ColumnInt(2));
  run.data_digest = row.ColumnBytes(3);
  run.data_sequences = row.ColumnInt(4);
  run.protocol_version = row.ColumnInt(5);
  run.codec = row.ColumnBytes(6);
  state->restarts = row.ColumnInt(7) - 1;
  return absl::OkStatus();
}

absl::Status CheckIntact(const Database& database, const std::string& directory) {
  ISTHMUS_ASSIGN_OR_RETURN(Statement check, database.Prepare("PRAGMA quick_check(1)"));
  ISTHMUS_ASSIGN_OR_RETURN(const bool has_row, check.Step());
  const std::string verdict = has_row ? check.ColumnBytes(0) : "no answer";
  return verdict == "ok" ? absl::OkStatus() : Damaged(directory, verdict);
}

absl::Status WriteRounds(Database* database, const LedgerWrite& write) {
  ISTHMUS_ASSIGN_OR_RETURN(Statement opening,
                           database->Prepare("INSERT OR REPLACE INTO openings VALUES (?, ?, ?, ?, ?)"));
  for (const OpeningRecord& record : write.openings) {
    opening.Int(record.key().round())
        .Int(record.key().fragment())
        .Int(record.attempt())
        .Int(record.view_id());
    ISTHMUS_RETURN_IF_ERROR(opening.Bytes(record.SerializeAsString()).Run());
  }
  ISTHMUS_ASSIGN_OR_RETURN(Statement abort,
                           database->Prepare("INSERT OR REPLACE INTO aborts VALUES (?, ?, ?, ?, ?)"));
  for (const AbortRecord& record : write.aborts) {
    abort.Int(record.key().round()).Int(record.key().fragment()).Int(record.attempt()).Text(record.reason());
    ISTHMUS_RETURN_IF_ERROR(abort.Bytes(record.SerializeAsString()).Run());
  }
  return absl::OkStatus();
}

absl::Status WriteSites(Database* database, const LedgerWrite& write) {
  ISTHMUS_ASSIGN_OR_RETURN(Statement event,
                           database->Prepare("INSERT INTO events VALUES (NULL, ?, ?, ?, ?, ?, ?)"));
  for (const EventRecord& record : write.events) {
    event.Int(record.kind()).Text(record.life().site()).Int(record.life().incarnation()).Int(record.round());
    ISTHMUS_RETURN_IF_ERROR(event.Text(record.reason()).Bytes(record.SerializeAsString()).Run());
  }
  ISTHMUS_ASSIGN_OR_RETURN(Statement life,
                           database->Prepare("INSERT OR REPLACE INTO incarnations VALUES (?, ?)"));
  for (const auto& [site, incarnation] : write.incarnations) {
    ISTHMUS_RETURN_IF_ERROR(life.Text(site).Int(incarnation).Run());
  }
  if (write.lease_rows == nullptr) return absl::OkStatus();
  ISTHMUS_RETURN_IF_ERROR(database->Execute("DELETE FROM lease_rows"));
  ISTHMUS_ASSIGN_OR_RETURN(Statement lease,
                           database->Prepare("INSERT INTO lease_rows VALUES (NULL, ?, ?, ?)"));
  for (const LeaseRow& row : *write.lease_rows) {
    ISTHMUS_RETURN_IF_ERROR(
        lease.Text(row.life().site()).Int(row.number()).Bytes(row.SerializeAsString()).Run());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PrepareTables(Database* database, const std::string& directory,
                           const std::function<void()>& before_commit) {
  ISTHMUS_ASSIGN_OR_RETURN(const int64_t format, database->QueryInt("PRAGMA user_version"));
  ISTHMUS_ASSIGN_OR_RETURN(const int64_t application, database->QueryInt("PRAGMA application_id"));
  ISTHMUS_ASSIGN_OR_RETURN(const int64_t tables, database->QueryInt("SELECT count(*) FROM sqlite_master"));
  const bool is_new = format == 0 && application == 0 && tables == 0;
  if (!is_new && application != kApplicationId) {
    return absl::FailedPreconditionError(
        absl::StrCat("state directory ", directory, ": ledger.sqlite is a database of another program"));
  }
  if (format > kLedgerFormat) {
    return absl::FailedPreconditionError(
        absl::StrCat("state directory ", directory, " was written in format ", format,
                     ", this program knows formats up to ", kLedgerFormat, ": use a newer isthmus"));
  }
  ISTHMUS_RETURN_IF_ERROR(database->Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"));
  if (!is_new) return absl::OkStatus();
  return database->Transaction(
      [&] {
        return database->Execute(absl::StrCat(kTables, "PRAGMA application_id = ", kApplicationId,
                                              "; PRAGMA user_version = ", kLedgerFormat, ";"));
      },
      before_commit);
}

absl::Status InsertRun(Database* database, const RunRecord& run) {
  ISTHMUS_ASSIGN_OR_RETURN(Statement row,
                           database->Prepare("INSERT INTO run VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, 1)"));
  row.Text(run.run_file.name()).Text(run.run_id).Bytes(run.run_file.SerializeAsString());
  row.Int(static_cast<int64_t>(run.layout_digest)).Bytes(run.data_digest).Int(run.data_sequences);
  return row.Int(run.protocol_version).Text(run.codec).Run();
}

absl::Status InsertCommit(Database* database, const CommitRecord& record) {
  ISTHMUS_ASSIGN_OR_RETURN(
      Statement row, database->Prepare("INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  row.Int(record.key().round())
      .Int(record.key().fragment())
      .Int(record.view_id())
      .Int(record.schedule_step());
  row.Int(record.included_size()).Int(record.total_weight()).Int(record.outer_rate_bits());
  row.Bytes(record.base_digest()).Bytes(record.update_digest()).Int(record.update_bytes());
  return row.Bytes(record.state_digest()).Text(record.reason()).Bytes(record.SerializeAsString()).Run();
}

absl::Status InsertSnapshot(Database* database, const SnapshotInfo& info, int keep) {
  ISTHMUS_ASSIGN_OR_RETURN(Statement row,
                           database->Prepare("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)"));
  ISTHMUS_RETURN_IF_ERROR(row.Int(info.round()).Int(info.bytes()).Bytes(info.SerializeAsString()).Run());
  ISTHMUS_ASSIGN_OR_RETURN(Statement prune,
                           database->Prepare("DELETE FROM snapshots WHERE round NOT IN"
                                             " (SELECT round FROM snapshots ORDER BY round DESC LIMIT ?)"));
  return prune.Int(std::max(keep, 1)).Run();
}

absl::Status ApplyWrite(Database* database, const LedgerWrite& write) {
  if (write.empty()) return absl::OkStatus();
  ISTHMUS_RETURN_IF_ERROR(WriteRounds(database, write));
  ISTHMUS_RETURN_IF_ERROR(WriteSites(database, write));
  if (!write.data_digest.empty()) {
    ISTHMUS_ASSIGN_OR_RETURN(Statement data,
                             database->Prepare("UPDATE run SET data_digest = ?, data_sequences = ?"));
    ISTHMUS_RETURN_IF_ERROR(data.Bytes(write.data_digest).Int(write.data_sequences).Run());
  }
  if (write.run_file != nullptr) {
    ISTHMUS_ASSIGN_OR_RETURN(Statement run, database->Prepare("UPDATE run SET run_file = ?"));
    ISTHMUS_RETURN_IF_ERROR(run.Bytes(write.run_file->SerializeAsString()).Run());
  }
  return absl::OkStatus();
}

absl::StatusOr<LedgerState> ReadState(const Database& database, const std::string& directory) {
  ISTHMUS_RETURN_IF_ERROR(CheckIntact(database, directory));
  LedgerState state;
  ISTHMUS_RETURN_IF_ERROR(ReadRun(database, directory, &state));
  const auto read = [&](absl::string_view table, absl::string_view sql, auto* out) {
    return ReadRecords(database, table, sql, directory, out);
  };
  ISTHMUS_RETURN_IF_ERROR(
      read("commits", "SELECT record FROM commits ORDER BY round, fragment", &state.commits));
  ISTHMUS_RETURN_IF_ERROR(
      read("aborts", "SELECT record FROM aborts ORDER BY round, fragment, attempt", &state.aborts));
  ISTHMUS_RETURN_IF_ERROR(read("events", "SELECT record FROM events ORDER BY id", &state.events));
  ISTHMUS_RETURN_IF_ERROR(
      read("openings",
           "SELECT record FROM openings AS o WHERE"
           " attempt = (SELECT max(attempt) FROM openings AS p WHERE p.round = o.round AND"
           "   p.fragment = o.fragment)"
           " AND NOT EXISTS (SELECT 1 FROM commits AS c WHERE c.round = o.round AND"
           "   c.fragment = o.fragment)"
           " AND NOT EXISTS (SELECT 1 FROM aborts AS a WHERE a.round = o.round AND"
           "   a.fragment = o.fragment AND a.attempt = o.attempt)"
           " ORDER BY round, fragment",
           &state.open));
  ISTHMUS_RETURN_IF_ERROR(read("snapshots", "SELECT record FROM snapshots ORDER BY round", &state.snapshots));
  ISTHMUS_RETURN_IF_ERROR(read("lease_rows", "SELECT record FROM lease_rows ORDER BY id", &state.lease_rows));
  ISTHMUS_ASSIGN_OR_RETURN(Statement lives,
                           database.Prepare("SELECT site, incarnation FROM incarnations ORDER BY site"));
  while (true) {
    ISTHMUS_ASSIGN_OR_RETURN(const bool has_row, lives.Step());
    if (!has_row) return state;
    state.incarnations.emplace_back(lives.ColumnBytes(0), lives.ColumnInt(1));
  }
}

}  // namespace isthmus
