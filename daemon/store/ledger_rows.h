// The ledger's tables: which there are, and records into and out of their rows. Part of SqliteLedger, which
// owns the transactions around these calls and the files beside them.
#ifndef ISTHMUS_DAEMON_STORE_LEDGER_ROWS_H_
#define ISTHMUS_DAEMON_STORE_LEDGER_ROWS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/store/ledger.h"
#include "daemon/store/sqlite.h"

namespace isthmus {

// Raised by one whenever an older program could not read what this one writes.
inline constexpr int64_t kLedgerFormat = 1;

// Makes the tables in a new file, or judges an old one. FAILED_PRECONDITION: of a newer format (both numbers
// named), or a database of something else. Sets the journal mode. `before_commit` as in
// Database::Transaction.
absl::Status PrepareTables(Database* database, const std::string& directory,
                           const std::function<void()>& before_commit);

// Inside a transaction.
absl::Status InsertRun(Database* database, const RunRecord& run);
absl::Status InsertCommit(Database* database, const CommitRecord& record);
absl::Status InsertSnapshot(Database* database, const SnapshotInfo& info, int keep);
absl::Status ApplyWrite(Database* database, const LedgerWrite& write);

// Everything of LedgerState. NOT_FOUND: no run; DATA_LOSS: a row that cannot be read, its table named.
absl::StatusOr<LedgerState> ReadState(const Database& database, const std::string& directory);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_STORE_LEDGER_ROWS_H_
