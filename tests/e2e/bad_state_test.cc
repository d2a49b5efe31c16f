// State directories that cannot be used, or that give out in mid-run: said once, clearly, and nothing lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/run_world.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

constexpr int kFailed = 1, kBadInput = 2;
const RunWorld::Arguments kPaced = {"--max-tokens-per-second", std::to_string(kTenStepsPerSecond)};

// A file system in memory over a folder of the world, while this lives; for disks that are full or read-only,
// which root's processes would not notice by modes.
class SmallDisk {
 public:
  SmallDisk(const RunWorld& world, absl::string_view folder, int64_t bytes) : path_(world.PathOf(folder)) {
    mkdir(path_.c_str(), 0777);
    is_mounted_ = mount("e2e", path_.c_str(), "tmpfs", 0, absl::StrCat("size=", bytes).c_str()) == 0;
    if (!is_mounted_) why_ = strerror(errno);
  }
  ~SmallDisk() {
    if (is_mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  bool is_mounted() const { return is_mounted_; }
  const std::string& why() const { return why_; }

  bool Remount(unsigned long flags, int64_t bytes) {
    return mount("e2e", path_.c_str(), "tmpfs", MS_REMOUNT | flags, absl::StrCat("size=", bytes).c_str()) ==
           0;
  }

 private:
  const std::string path_;
  bool is_mounted_ = false;
  std::string why_;
};

void ExpectError(Spawned* process, int code, const std::vector<std::string>& words) {
  EXPECT_EQ(process->Wait(), code) << process->output();
  for (const std::string& word : words) EXPECT_THAT(process->standard_error(), HasSubstr(word));
}

std::unique_ptr<Spawned> CoordinatorOn(RunWorld* world, const std::string& state) {
  return world->Start({"coordinator", world->PathOf("run.textproto"), "--listen", "127.0.0.1:0",
                       "--state-dir", world->PathOf(state)});
}

#define SKIP_UNLESS_MOUNTED(disk)                                                                      \
  if (!(disk).is_mounted()) {                                                                          \
    GTEST_SKIP() << "a small file system cannot be mounted here (" << (disk).why() << "): not tested"; \
  }

TEST(BadStateTest, ADirectoryInUseIsRefusedAndItsHolderGoesOn) {
  RunWorld world;
  RunShape shape;
  shape.sites = 1;
  ASSERT_TRUE(world.StartCoordinator(shape));
  ExpectError(CoordinatorOn(&world, "state").get(), kBadInput,
              {world.PathOf("state"), "is in use by process"});
  world.StartWorker("a");
  EXPECT_EQ(world.AwaitFinished().rounds_committed(), 8);
  world.ExpectWorkersDone();
}

TEST(BadStateTest, ADirectoryOfAnotherRunIsRefusedAndBothAreNamed) {
  RunWorld world;
  ASSERT_TRUE(world.StartCoordinator(RunShape()));
  world.coordinator().Kill();
  RunShape other;
  other.name = "other";
  world.WriteFile("run.textproto", RunText(other));
  ExpectError(CoordinatorOn(&world, "state").get(), kBadInput,
              {world.PathOf("state"), "\"e2e\"", "\"other\""});
}

TEST(BadStateTest, ADirectoryOfANewerVersionIsRefused) {
  RunWorld world;
  ASSERT_TRUE(world.StartCoordinator(RunShape()));
  world.coordinator().Signal(SIGTERM);
  ASSERT_EQ(world.coordinator().Wait(), 0);
  // SQLite's user version: four bytes of the file's header, big-endian.
  std::string database = world.ReadFile("state/ledger.sqlite");
  ASSERT_GT(database.size(), 64);
  database.replace(60, 4, std::string("\0\0\0\x63", 4));
  world.WriteFile("state/ledger.sqlite", database);
  ExpectError(CoordinatorOn(&world, "state").get(), kBadInput,
              {world.PathOf("state"), "99", "use a newer isthmus"});
}

TEST(BadStateTest, AReadOnlyDirectoryIsNamed) {
  RunWorld world;
  world.WriteFile("run.textproto", RunText(RunShape()));
  SmallDisk disk(world, "disk", 1 << 20);
  SKIP_UNLESS_MOUNTED(disk);
  ASSERT_TRUE(disk.Remount(MS_RDONLY, 1 << 20)) << strerror(errno);
  ExpectError(CoordinatorOn(&world, "disk").get(), kBadInput,
              {"state directory " + world.PathOf("disk") + " cannot be used: ", "Read-only file system"});
}

TEST(BadStateTest, ADirectoryUnderAFileIsNamed) {
  RunWorld world;
  world.WriteFile("run.textproto", RunText(RunShape()));
  world.WriteFile("plain", "no folder");
  for (const std::string path : {"plain", "plain/state"}) {
    const auto coordinator = CoordinatorOn(&world, path);
    EXPECT_EQ(coordinator->Wait(), kBadInput);
    EXPECT_EQ(coordinator->standard_error(),
              absl::StrCat("isthmus: state directory ", world.PathOf(path),
                           " cannot be used: ", world.PathOf(path), ": Not a directory\n"));
  }
}

TEST(BadStateTest, AFullDirectoryIsNamed) {
  RunWorld world;
  world.WriteFile("run.textproto", RunText(RunShape()));
  SmallDisk disk(world, "disk", 64 << 10);  // less than one snapshot
  SKIP_UNLESS_MOUNTED(disk);
  const auto coordinator = CoordinatorOn(&world, "disk");
  ExpectError(coordinator.get(), kFailed, {world.PathOf("disk")});
  EXPECT_TRUE(absl::StrContains(coordinator->standard_error(), "No space left") ||
              absl::StrContains(coordinator->standard_error(), "full"))
      << coordinator->standard_error();
  // With space it begins.
  ASSERT_TRUE(disk.Remount(0, 16 << 20)) << strerror(errno);
  EXPECT_GE(CoordinatorOn(&world, "disk")->AwaitLine("listening on "), 0);
}

TEST(BadStateTest, ADiskThatFillsUpEndsTheCoordinatorAndTheRunGoesOnOnceThereIsSpace) {
  RunWorld world;
  SmallDisk disk(world, "state", 16 << 20);
  SKIP_UNLESS_MOUNTED(disk);
  RunShape shape;
  shape.rounds = 14;
  shape.sites = 1;
  ASSERT_TRUE(world.StartCoordinator(shape));
  world.StartWorker("a", kPaced);
  world.AwaitRounds(2);
  // All that is left of the disk.
  std::string block(64 << 10, 'x');
  for (int i = 0; i < 300; ++i) {
    FILE* file = fopen(world.PathOf(absl::StrCat("state/ballast-", i)).c_str(), "wb");
    if (file == nullptr) break;
    const bool is_whole = fwrite(block.data(), 1, block.size(), file) == block.size();
    if (fclose(file) != 0 || !is_whole) break;
  }
  EXPECT_EQ(world.coordinator().Wait(), kFailed) << world.coordinator().output();
  const std::string said = world.coordinator().standard_error();
  EXPECT_THAT(said, HasSubstr(world.PathOf("state")));
  EXPECT_TRUE(absl::StrContains(said, "No space left") || absl::StrContains(said, "full")) << said;
  for (int i = 0; i < 300; ++i) unlink(world.PathOf(absl::StrCat("state/ballast-", i)).c_str());
  ASSERT_TRUE(world.RestartCoordinator());
  const auto back = world.Ask();
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_GE(back->rounds_committed(), 2);
  const RunStatus status = world.AwaitFinished();
  world.ExpectWorkersDone();
  EXPECT_EQ(status.rounds_committed(), 14);
  EXPECT_EQ(status.digests_deviating(), 0);
  EXPECT_EQ(SiteOf(status, "a").incarnation(), 1);
}

}  // namespace
}  // namespace isthmus
