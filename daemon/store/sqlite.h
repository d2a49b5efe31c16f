// A thin hold on SQLite: statements that clean up after themselves, and status codes. One thread at a time.
#ifndef ISTHMUS_DAEMON_STORE_SQLITE_H_
#define ISTHMUS_DAEMON_STORE_SQLITE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sqlite3;
struct sqlite3_stmt;

namespace isthmus {

class Database;

// A prepared statement; must not outlive its database. Errors are kept until Step.
class Statement {
 public:
  Statement(Statement&& other) noexcept;
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // Parameters in order, from the first question mark on.
  Statement& Int(int64_t value);
  Statement& Text(absl::string_view value);
  Statement& Bytes(absl::string_view value);

  // True: a row is there; false: done. Errors as Database.
  absl::StatusOr<bool> Step();
  // Runs a statement that gives no rows, and makes it ready for new parameters.
  absl::Status Run();

  // Columns of the row, from 0; zero or empty for NULL.
  int64_t ColumnInt(int column) const;
  std::string ColumnBytes(int column) const;

 private:
  friend class Database;
  Statement(const Database* database, sqlite3_stmt* statement) : database_(database), statement_(statement) {}

  const Database* database_;
  sqlite3_stmt* statement_;
  int next_ = 1;
  int first_error_ = 0;
};

// Every error names the file. RESOURCE_EXHAUSTED: the disk is full; UNAVAILABLE: read-only, gone, or held by
// another process; DATA_LOSS: not a database, or damaged; INTERNAL: a mistake of ours.
class Database {
 public:
  // Opens or creates the file. Sets nothing yet.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Runs one or more statements that give no rows.
  absl::Status Execute(const std::string& sql);
  absl::StatusOr<Statement> Prepare(absl::string_view sql) const;
  // The first column of the first row; 0 when there is none.
  absl::StatusOr<int64_t> QueryInt(absl::string_view sql) const;

  // All of `body`, or nothing of it. `before_commit` is called just before the commit.
  absl::Status Transaction(const std::function<absl::Status()>& body,
                           const std::function<void()>& before_commit);
  // Whether the last Transaction failed in its commit for a reason after which the medium may hold it all the
  // same.
  bool is_outcome_unknown() const { return is_outcome_unknown_; }

  // The newest error, as a status; `code` is what the call returned.
  absl::Status Error(int code) const;

 private:
  Database(std::string path, sqlite3* handle) : path_(std::move(path)), handle_(handle) {}

  std::string path_;
  sqlite3* handle_;
  bool is_outcome_unknown_ = false;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_STORE_SQLITE_H_
