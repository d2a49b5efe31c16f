#include "daemon/store/sqlite.h"

#include <sqlite3.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"

namespace isthmus {

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_),
      statement_(std::exchange(other.statement_, nullptr)),
      next_(other.next_),
      first_error_(other.first_error_) {}

Statement::~Statement() { sqlite3_finalize(statement_); }

Statement& Statement::Int(int64_t value) {
  const int code = sqlite3_bind_int64(statement_, next_++, value);
  if (first_error_ == SQLITE_OK) first_error_ = code;
  return *this;
}

Statement& Statement::Text(absl::string_view value) {
  // A null pointer would bind NULL.
  const char* data = value.data() == nullptr ? "" : value.data();
  const int code =
      sqlite3_bind_text64(statement_, next_++, data, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  if (first_error_ == SQLITE_OK) first_error_ = code;
  return *this;
}

Statement& Statement::Bytes(absl::string_view value) {
  const char* data = value.data() == nullptr ? "" : value.data();
  const int code = sqlite3_bind_blob64(statement_, next_++, data, value.size(), SQLITE_TRANSIENT);
  if (first_error_ == SQLITE_OK) first_error_ = code;
  return *this;
}

absl::StatusOr<bool> Statement::Step() {
  if (first_error_ != SQLITE_OK) return database_->Error(first_error_);
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return database_->Error(code);
}

absl::Status Statement::Run() {
  const absl::StatusOr<bool> row = Step();
  sqlite3_reset(statement_);
  next_ = 1;
  first_error_ = SQLITE_OK;
  return row.status();
}

int64_t Statement::ColumnInt(int column) const { return sqlite3_column_int64(statement_, column); }

std::string Statement::ColumnBytes(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return data == nullptr ? std::string()
                         : std::string(static_cast<const char*>(data), static_cast<size_t>(size));
}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const std::string& path) {
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  std::unique_ptr<Database> database(new Database(path, handle));
  if (code != SQLITE_OK) return database->Error(code);
  sqlite3_extended_result_codes(handle, 1);
  return database;
}

Database::~Database() { sqlite3_close(handle_); }

absl::Status Database::Error(int code) const {
  const int error_number = handle_ == nullptr ? 0 : sqlite3_system_errno(handle_);
  std::string message =
      absl::StrCat(path_, ": ", handle_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle_));
  const int primary = code & 0xFF;
  const bool is_of_system = primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN || primary == SQLITE_FULL;
  if (is_of_system && error_number != 0) absl::StrAppend(&message, " (", std::strerror(error_number), ")");
  if (is_of_system && (error_number == ENOSPC || error_number == EDQUOT)) {
    return absl::ResourceExhaustedError(message);
  }
  switch (primary) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(message);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(message);
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PERM:
      return absl::UnavailableError(message);
    default:
      return absl::InternalError(message);
  }
}

absl::Status Database::Execute(const std::string& sql) {
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code);
}

absl::StatusOr<Statement> Database::Prepare(absl::string_view sql) const {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(handle_, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (code != SQLITE_OK) return Error(code);
  return Statement(this, statement);
}

absl::StatusOr<int64_t> Database::QueryInt(absl::string_view sql) const {
  ISTHMUS_ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  ISTHMUS_ASSIGN_OR_RETURN(const bool has_row, statement.Step());
  return has_row ? statement.ColumnInt(0) : 0;
}

absl::Status Database::Transaction(const std::function<absl::Status()>& body,
                                   const std::function<void()>& before_commit) {
  is_outcome_unknown_ = false;
  ISTHMUS_RETURN_IF_ERROR(Execute("BEGIN IMMEDIATE"));
  absl::Status status = body();
  if (status.ok()) {
    before_commit();
    status = Execute("COMMIT");
    // A log that could not be synced may be found whole after a crash; one that did not fit cannot.
    is_outcome_unknown_ = !status.ok() && (sqlite3_extended_errcode(handle_) & 0xFF) != SQLITE_FULL;
  }
  // Some errors have rolled back already.
  if (!status.ok() && sqlite3_get_autocommit(handle_) == 0) {
    sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
  return status;
}

}  // namespace isthmus
