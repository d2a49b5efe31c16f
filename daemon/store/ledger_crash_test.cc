// Kills a process with SIGKILL before each durable act of a scripted run in turn, then opens what it left:
// nothing that was acknowledged is lost, nothing is half there, and the script can be finished from where it
// stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "daemon/base/digest.h"
#include "daemon/base/status.h"
#include "daemon/store/blobs.h"
#include "daemon/store/ledger_samples.h"
#include "daemon/store/packed_snapshot.h"
#include "daemon/store/snapshot.h"
#include "daemon/store/sqlite_ledger.h"

namespace isthmus {
namespace {

constexpr int64_t kRounds = 6;
constexpr int kKeep = 2;

// What the script tells the parent once a call has returned OK.
enum Ack : char { kBegun = 'b', kOpened = 'o', kCommitted = 'c', kSnapshot = 's' };

class Acks {
 public:
  explicit Acks(int fd) : fd_(fd) {}
  void Tell(Ack kind, int64_t round) {
    const char message[2] = {static_cast<char>(kind), static_cast<char>(round)};
    if (fd_ >= 0 && write(fd_, message, 2) != 2) _exit(3);
  }

 private:
  int fd_;
};

// A run of a few rounds with a snapshot after every second; goes on from whatever the directory holds.
absl::Status RunScript(const std::string& path, const DurableHook& hook, Acks acks) {
  ISTHMUS_ASSIGN_OR_RETURN(auto ledger, SqliteLedger::Open({path, "demo", hook}, ConformanceTable()));
  absl::StatusOr<LedgerState> state = ledger->Load();
  if (absl::IsNotFound(state.status())) {
    ISTHMUS_RETURN_IF_ERROR(ledger->Begin(ConformanceRun()));
    acks.Tell(kBegun, 0);
    state = ledger->Load();
  }
  if (!state.ok()) return state.status();
  int64_t snapshot = state->snapshots.empty() ? -1 : state->snapshots.back().round();
  const int64_t done = state->commits.empty() ? 0 : state->commits.back().key().round();
  for (int64_t round = done; round <= kRounds; ++round) {
    if (round > done) {
      const std::string residual = ResidualOf(round);
      ISTHMUS_RETURN_IF_ERROR(ledger->Commit(MakeCommit(round), UpdateOf(round), WithResidual(residual)));
      acks.Tell(kCommitted, round);
    }
    if (round % 2 == 0 && snapshot < round) {
      ISTHMUS_RETURN_IF_ERROR(
          ledger->AddSnapshot(MakePackedSnapshotInfo(round), MakeSnapshotValues(round), kKeep));
      snapshot = round;
      acks.Tell(kSnapshot, round);
    }
    LedgerWrite write;
    write.openings.push_back(MakeOpening(round + 1));
    const std::vector<LeaseRow> leases = {MakeLeaseRow("paris", round, 0, 10)};
    write.lease_rows = &leases;
    ISTHMUS_RETURN_IF_ERROR(ledger->Write(write));
    acks.Tell(kOpened, round + 1);
  }
  return absl::OkStatus();
}

struct Outcome {
  bool was_killed = false;
  std::vector<std::pair<char, int64_t>> acks;

  // The newest round acknowledged in this way; −1: none.
  int64_t Newest(Ack kind) const {
    int64_t newest = -1;
    for (const auto& [k, round] : acks) {
      if (k == kind) newest = std::max(newest, round);
    }
    return newest;
  }
};

// Runs the script in a process of its own that dies before its `kill_at`-th durable act (from 0).
Outcome RunAndKill(const std::string& path, int kill_at) {
  int pipe_fds[2];
  EXPECT_EQ(pipe(pipe_fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(pipe_fds[0]);
    int acts = 0;
    const absl::Status status = RunScript(
        path,
        [&](absl::string_view) {
          if (acts++ == kill_at) kill(getpid(), SIGKILL);
        },
        Acks(pipe_fds[1]));
    _exit(status.ok() ? 0 : 2);
  }
  close(pipe_fds[1]);
  Outcome outcome;
  char message[2];
  while (read(pipe_fds[0], message, 2) == 2) outcome.acks.emplace_back(message[0], message[1]);
  close(pipe_fds[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  outcome.was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  EXPECT_TRUE(outcome.was_killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) << "act " << kill_at;
  return outcome;
}

// All that must hold of a directory, whenever its process was killed.
void CheckDirectory(const std::string& path, const Outcome& outcome) {
  const auto opened = SqliteLedger::Open({path, "demo", nullptr}, ConformanceTable());
  ASSERT_EQ(opened.status(), absl::OkStatus());
  SqliteLedger& ledger = **opened;
  const absl::StatusOr<LedgerState> state = ledger.Load();
  if (absl::IsNotFound(state.status())) {
    EXPECT_EQ(outcome.Newest(kBegun), -1) << "an acknowledged run is lost";
    return;
  }
  ASSERT_EQ(state.status(), absl::OkStatus());
  EXPECT_EQ(state->run.run_id, "run-1");

  // Committed rounds: all that were acknowledged, at most one more, none left out, each with its bytes.
  const int64_t commits = static_cast<int64_t>(state->commits.size());
  const int64_t acknowledged = std::max<int64_t>(outcome.Newest(kCommitted), 0);
  EXPECT_GE(commits, acknowledged);
  EXPECT_LE(commits, acknowledged + 1);
  const int64_t oldest = state->snapshots.empty() ? -1 : state->snapshots.front().round();
  for (int64_t round = 1; round <= commits; ++round) {
    const CommitRecord& record = state->commits[static_cast<size_t>(round - 1)];
    EXPECT_EQ(record.SerializeAsString(), MakeCommit(round).SerializeAsString());
    const auto blob = ledger.OpenBlob({UPDATE, round, 0});
    if (round <= oldest) {
      EXPECT_EQ(blob.status().code(), absl::StatusCode::kNotFound);
      continue;
    }
    ASSERT_EQ(blob.status(), absl::OkStatus());
    EXPECT_EQ(DigestOf(ReadWhole(**blob).value()).ToBytes(), record.update_digest());
  }

  // The residual belongs to the last committed round, and to no other; the one before is kept.
  for (int64_t round = std::max<int64_t>(1, commits - 1); round <= commits; ++round) {
    const auto residual = ledger.OpenBlob({RESIDUAL, round, 0});
    ASSERT_EQ(residual.status(), absl::OkStatus()) << "round " << round;
    EXPECT_EQ(ReadWhole(**residual).value(), ResidualOf(round));
  }
  EXPECT_EQ(ledger.OpenBlob({RESIDUAL, commits + 1, 0}).status().code(), absl::StatusCode::kNotFound);

  // The round acknowledged as open is open, unless it is committed by now.
  for (const OpeningRecord& opening : state->open) EXPECT_EQ(opening.key().round(), commits + 1);
  if (outcome.Newest(kOpened) > commits) {
    EXPECT_EQ(state->open.size(), 1u);
  }

  // Snapshots: the newest acknowledged one is there, whole; never more than are kept.
  EXPECT_LE(state->snapshots.size(), static_cast<size_t>(kKeep));
  if (outcome.Newest(kSnapshot) >= 0) {
    ASSERT_FALSE(state->snapshots.empty());
    EXPECT_GE(state->snapshots.back().round(), outcome.Newest(kSnapshot));
  }
  for (const SnapshotInfo& info : state->snapshots) {
    const auto blob = ledger.OpenBlob({SNAPSHOT, info.round(), 0});
    ASSERT_EQ(blob.status(), absl::OkStatus());
    const auto snapshot = ReadSnapshot(*ConformanceTable(), **blob);
    ASSERT_EQ(snapshot.status(), absl::OkStatus());
    EXPECT_EQ(snapshot->values.anchor, MakeSnapshotValues(info.round()).anchor);
    const auto packed = ledger.OpenBlob({PACKED_SNAPSHOT, info.round(), 0});
    ASSERT_EQ(packed.status(), absl::OkStatus());
    const auto plain = UnpackSnapshot(*ConformanceTable(), info, ReadWhole(**packed).value());
    ASSERT_EQ(plain.status(), absl::OkStatus());
    EXPECT_EQ(*plain, ReadWhole(**blob).value());
  }

  // Nothing is left over.
  int64_t files = 0;
  for (const char* folder : {"updates", "snapshots", "residuals"}) {
    files += std::distance(std::filesystem::directory_iterator(path + "/" + folder), {});
  }
  EXPECT_EQ(files, 2 * static_cast<int64_t>(state->snapshots.size()) + commits -
                       std::max<int64_t>(oldest, 0) + std::min<int64_t>(commits, 2));
}

class LedgerCrashTest : public ::testing::Test {
 protected:
  ~LedgerCrashTest() override { std::filesystem::remove_all(folder_); }

  // A directory with a finished script, to compare with.
  int CountActs() {
    int acts = 0;
    EXPECT_EQ(RunScript(
                  folder_ + "/counted", [&](absl::string_view) { ++acts; }, Acks(-1)),
              absl::OkStatus());
    return acts;
  }

  std::string folder_ = FreshFolder();
};

TEST_F(LedgerCrashTest, AKillAtEveryDurableActLosesNothingAndTheRunCanBeFinished) {
  const int acts = CountActs();
  ASSERT_GT(acts, 50);
  for (int kill_at = 0; kill_at < acts; ++kill_at) {
    SCOPED_TRACE(absl::StrCat("killed before durable act ", kill_at));
    const std::string path = absl::StrCat(folder_, "/", kill_at);
    const Outcome outcome = RunAndKill(path, kill_at);
    EXPECT_TRUE(outcome.was_killed);
    CheckDirectory(path, outcome);
    // Started again, it goes on to the end.
    const Outcome rest = RunAndKill(path, -1);
    EXPECT_FALSE(rest.was_killed);
    const auto ledger = SqliteLedger::Open({path, "demo", nullptr}, ConformanceTable());
    ASSERT_EQ(ledger.status(), absl::OkStatus());
    EXPECT_EQ((*ledger)->Load()->commits.size(), static_cast<size_t>(kRounds));
    if (HasFailure()) break;
  }
}

TEST_F(LedgerCrashTest, ARunKilledAgainAndAgainStillGetsToItsEnd) {
  const std::string path = folder_ + "/again";
  int starts = 0;
  // Each start gets two acts further into its work than the one before, so progress is certain.
  while (RunAndKill(path, 5 + 2 * starts).was_killed) ASSERT_LT(++starts, 100);
  EXPECT_GT(starts, 3);
  const auto ledger = SqliteLedger::Open({path, "demo", nullptr}, ConformanceTable());
  ASSERT_EQ(ledger.status(), absl::OkStatus());
  const LedgerState state = (*ledger)->Load().value();
  EXPECT_EQ(state.commits.size(), static_cast<size_t>(kRounds));
  EXPECT_EQ(state.snapshots.back().round(), kRounds);
}

}  // namespace
}  // namespace isthmus
