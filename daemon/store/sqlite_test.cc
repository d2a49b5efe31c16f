#include "daemon/store/sqlite.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace isthmus {
namespace {

class SqliteTest : public ::testing::Test {
 protected:
  SqliteTest() {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    database_ = Database::Open(folder_ + "/test.sqlite").value();
    EXPECT_EQ(database_->Execute("CREATE TABLE t (number INTEGER PRIMARY KEY, bytes BLOB)"),
              absl::OkStatus());
  }
  ~SqliteTest() override { std::filesystem::remove_all(folder_); }

  absl::Status Insert(int64_t number, absl::string_view bytes) {
    return database_->Prepare("INSERT INTO t VALUES (?, ?)")->Int(number).Bytes(bytes).Run();
  }
  int64_t Rows() { return database_->QueryInt("SELECT count(*) FROM t").value(); }

  std::string folder_ = ::testing::TempDir() + "/sqlite-XXXXXX";
  std::unique_ptr<Database> database_;
};

TEST_F(SqliteTest, ValuesComeBackAsTheyWentIn) {
  const std::string bytes("a\0b\xFF", 4);
  ASSERT_EQ(Insert(INT64_MIN, bytes), absl::OkStatus());
  ASSERT_EQ(Insert(7, absl::string_view()), absl::OkStatus());
  Statement rows = database_->Prepare("SELECT number, bytes FROM t ORDER BY number").value();
  ASSERT_TRUE(rows.Step().value());
  EXPECT_EQ(rows.ColumnInt(0), INT64_MIN);
  EXPECT_EQ(rows.ColumnBytes(1), bytes);
  ASSERT_TRUE(rows.Step().value());
  EXPECT_EQ(rows.ColumnBytes(1), "");
  EXPECT_FALSE(rows.Step().value());
}

TEST_F(SqliteTest, ATransactionThatFailsLeavesNothing) {
  int commits = 0;
  const auto count = [&] { ++commits; };
  EXPECT_EQ(database_->Transaction(
                [&] {
                  EXPECT_EQ(Insert(1, "x"), absl::OkStatus());
                  return absl::InvalidArgumentError("stop");
                },
                count),
            absl::InvalidArgumentError("stop"));
  EXPECT_EQ(Rows(), 0);
  EXPECT_EQ(commits, 0);
  EXPECT_FALSE(database_->is_outcome_unknown());
  EXPECT_EQ(database_->Transaction([&] { return Insert(1, "x"); }, count), absl::OkStatus());
  EXPECT_EQ(Rows(), 1);
  EXPECT_EQ(commits, 1);
}

TEST_F(SqliteTest, ErrorsNameTheFile) {
  const absl::Status status = database_->Execute("SELECT * FROM missing");
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(), folder_ + "/test.sqlite: no such table: missing");
  EXPECT_EQ(Database::Open(folder_ + "/no/such/folder").status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(SqliteTest, ALockHeldByAnotherConnectionIsUnavailable) {
  auto other = Database::Open(folder_ + "/test.sqlite").value();
  ASSERT_EQ(other->Execute("BEGIN EXCLUSIVE"), absl::OkStatus());
  EXPECT_EQ(Insert(1, "x").code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace isthmus
