// What users get wrong: one clear error that names the thing, the right exit code, and nothing lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/e2e/run_world.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

constexpr int kFailed = 1, kBadInput = 2;
const RunWorld::Arguments kPaced = {"--max-tokens-per-second", std::to_string(kTenStepsPerSecond)};

// What the program itself says in the end: the lines of standard error that are no log lines.
std::vector<std::string> Errors(const Spawned& process) {
  std::vector<std::string> errors;
  for (absl::string_view line : absl::StrSplit(process.standard_error(), '\n')) {
    if (absl::StartsWith(line, "isthmus: ")) errors.emplace_back(line);
  }
  return errors;
}

// It ended with `code` and one error that has all of `words` in it.
void ExpectError(Spawned* process, int code, const std::vector<std::string>& words) {
  EXPECT_EQ(process->Wait(), code) << process->output();
  const std::vector<std::string> errors = Errors(*process);
  ASSERT_EQ(errors.size(), 1) << process->output();
  for (const std::string& word : words) EXPECT_THAT(process->standard_error(), HasSubstr(word));
}

std::unique_ptr<Spawned> CoordinatorOn(RunWorld* world, const std::string& run_file) {
  return world->Start({"coordinator", world->PathOf(run_file), "--listen", "127.0.0.1:0", "--state-dir",
                       world->PathOf("state")});
}

std::unique_ptr<Spawned> WorkerOn(RunWorld* world, const RunWorld::Arguments& more = {},
                                  const std::string& data = "text.txt") {
  RunWorld::Arguments arguments = {"worker", world->url(), "--site", "x", "--data", world->PathOf(data)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return world->Start(arguments);
}

TEST(BadInputTest, ARunFilesMistakesAreAllNamedWithTheirLines) {
  RunWorld world;
  RunShape shape;
  shape.model = "vocabulary: 256 width: 33 heads: 2 context: -5";
  shape.more = "shoe_size: 43\n";
  world.WriteFile("bad.textproto", RunText(shape));
  for (const char* command : {"coordinator", "validate"}) {
    const auto process = command == std::string("coordinator")
                             ? CoordinatorOn(&world, "bad.textproto")
                             : world.Start({"validate", world.PathOf("bad.textproto")});
    ExpectError(
        process.get(), kBadInput,
        {"bad.textproto:3:", "model.context", "is -5", "2 heads do not divide a width of 33", "shoe_size"});
  }
}

TEST(BadInputTest, AMissingRunFileIsNamed) {
  RunWorld world;
  ExpectError(CoordinatorOn(&world, "no.textproto").get(), kBadInput, {"no.textproto", "No such file"});
}

TEST(BadInputTest, AnUnknownVariableIsNamed) {
  RunWorld world;
  world.WriteFile("run.textproto", RunText(RunShape()));
  const auto process =
      world.Start({"validate", world.PathOf("run.textproto")}, {{"ISTHMUS_STATE_DIRECTORY", "/x"}});
  ExpectError(process.get(), kBadInput, {"ISTHMUS_STATE_DIRECTORY"});
}

TEST(BadInputTest, WithoutACoordinatorAWorkerSaysSoAndGivesUpAfterTheTimeGiven) {
  RunWorld world;
  world.WriteFile("text.txt", SampleText(4096, 1));
  // A port that was free a moment ago.
  ASSERT_TRUE(world.StartCoordinator(RunShape()));
  const std::string url = world.url();
  world.coordinator().Kill();
  const auto worker = WorkerOn(&world, {"--give-up-after", "3s"});
  const auto status = world.Start({"status", url, "--give-up-after", "2s"});
  EXPECT_GE(worker->AwaitLine("dialling again, giving up after 3s"), 0) << worker->output();
  ExpectError(worker.get(), kFailed, {world.address().ToString(), "giving up"});
  EXPECT_EQ(status->Wait(), kFailed) << status->output();
  EXPECT_THAT(status->standard_error(), HasSubstr(world.address().ToString()));
}

TEST(BadInputTest, DataThatCannotBeTrainedOnIsRefusedAndNamed) {
  RunWorld world;
  RunShape shape;
  shape.sites = 1;
  ASSERT_TRUE(world.StartCoordinator(shape));
  world.WriteFile("empty.txt", "");
  world.WriteFile("short.txt", "just a few words");
  const auto missing = WorkerOn(&world, {}, "missing.txt");
  const auto empty = WorkerOn(&world, {}, "empty.txt");
  const auto folder = WorkerOn(&world, {}, "");
  ExpectError(missing.get(), kBadInput, {"missing.txt"});
  ExpectError(empty.get(), kBadInput, {"empty.txt", "is empty"});
  ExpectError(folder.get(), kBadInput, {"is not a regular file"});
  ExpectError(WorkerOn(&world, {}, "short.txt").get(), kBadInput,
              {"short.txt", "16 tokens, too few for one training"});
  // Nothing was lost by that.
  world.StartWorker("x");
  EXPECT_EQ(world.AwaitFinished().rounds_committed(), 8);
  world.ExpectWorkersDone();
}

TEST(BadInputTest, WhereLearningRunsCannotLeaveTheirFilesIsSaidBeforeTheyTrain) {
  RunWorld world;
  world.WriteFile("text.txt", SampleText(65536, 1));
  const std::string below = world.PathOf("text.txt") + "/below";
  const RunWorld::Arguments learning = {"bench", "learning", "--data", world.PathOf("text.txt")};
  const auto with = [&](RunWorld::Arguments more) {
    more.insert(more.begin(), learning.begin(), learning.end());
    return world.Start(more);
  };
  ExpectError(with({"--results", below}).get(), kBadInput, {"results file " + below, "Not a directory"});
  ExpectError(with({"--matrix", "--results", below}).get(), kBadInput, {"results file " + below});
  ExpectError(with({"--results", world.PathOf("x.jsonl"), "--dump-differences", below}).get(), kBadInput,
              {"differences folder " + below, "Not a directory"});
}

TEST(BadInputTest, AFolderWithoutDifferencesIsRefusedAndNamedBeforeAnythingIsMeasured) {
  RunWorld world;
  world.WriteFile("file", "no folder");
  for (const char* name : {"nowhere", "file", ""}) {
    const auto process = world.Start({"bench", "codec", "--differences", world.PathOf(name) + "/"});
    ExpectError(process.get(), kBadInput, {world.PathOf(name), "index.txt: not there"});
    EXPECT_EQ(process->standard_output(), "");
  }
}

TEST(BadInputTest, BenchesRefuseWhatTheyWouldPassOverOrCouldNotWriteBeforeTheyMeasure) {
  RunWorld world;
  world.WriteFile("text.txt", SampleText(65536, 1));
  const std::string text = world.PathOf("text.txt"), folder = world.PathOf("");
  const auto learn = [&](const RunWorld::Arguments& more) {
    RunWorld::Arguments all = {"bench", "learning", "--data", text, "--results", world.PathOf("x.jsonl")};
    all.insert(all.end(), more.begin(), more.end());
    return world.Start(all);
  };
  ExpectError(learn({"--group", "forms"}).get(), kBadInput, {"without --matrix", "--group"});
  ExpectError(learn({"--matrix", "--agreement"}).get(), kBadInput, {"--matrix", "--agreement"});
  ExpectError(learn({"--matrix", "--group", "none"}).get(), kBadInput, {"no group \"none\""});
  ExpectError(learn({"--matrix", "--json-out", folder}).get(), kBadInput, {folder, "Is a directory"});
  ExpectError(world.Start({"bench", "learning", "--data", text, "--results", text}).get(), kBadInput,
              {"results file " + text + ", line 1"});
  ExpectError(world.Start({"bench", "codec", "--spec", "dense", "--check"}).get(), kBadInput,
              {"--spec", "--check"});
  for (const char* flag : {"--json-out", "--sizes-json-out", "--speed-json-out"}) {
    ExpectError(world.Start({"bench", "codec", flag, folder}).get(), kBadInput, {folder, "Is a directory"});
    ExpectError(world.Start({"bench", "codec", flag, ""}).get(), kBadInput, {flag, "must not be empty"});
  }
}

TEST(BadInputTest, ATokenBeyondTheVocabularyIsRefusedAndNamed) {
  RunWorld world;
  world.WriteFile("run.textproto", R"(name: "tokens"
model { vocabulary: 300 width: 32 layers: 1 heads: 2 feed_forward: 32 context: 8 }
data { format: UINT16 } rounds { total_rounds: 2 })");
  std::string tokens;
  for (int i = 0; i < 200; ++i) tokens += i == 150 ? std::string("\xff\x02") : std::string("\x07\x01");
  world.WriteFile("tokens.bin", tokens);
  const auto process =
      world.Start({"validate", world.PathOf("run.textproto"), "--data", world.PathOf("tokens.bin")});
  ExpectError(process.get(), kBadInput, {"tokens.bin", "token 767 at offset 150", "vocabulary of 300"});
}

TEST(BadInputTest, AnotherDataFileAndAnotherRunNameAreRefusedAndNamed) {
  RunWorld world;
  RunShape shape;
  shape.sites = 1;
  shape.rounds = 500;
  ASSERT_TRUE(world.StartCoordinator(shape));
  world.StartWorker("a", kPaced);
  world.AwaitRounds(1);
  world.WriteFile("other.txt", SampleText(16384, 2));
  const auto worker = WorkerOn(&world, {}, "other.txt");
  const auto elsewhere =
      world.Start({"worker", absl::StrCat("isthmus://", world.address().ToString(), "/nine"), "--site", "y",
                   "--data", world.PathOf("text.txt")});
  const auto status =
      world.Start({"status", absl::StrCat("isthmus://", world.address().ToString(), "/nine")});
  ExpectError(worker.get(), kBadInput, {"data_digest"});
  ExpectError(elsewhere.get(), kBadInput, {"run_name", "'e2e'", "'nine'"});
  ExpectError(status.get(), kBadInput, {"'e2e'", "'nine'"});
}

TEST(BadInputTest, ADataFileThatChangedSinceTheRunBeganIsRefusedAndNamed) {
  RunWorld world;
  RunShape shape;
  shape.sites = 1;
  shape.rounds = 500;
  ASSERT_TRUE(world.StartCoordinator(shape));
  world.WriteFile("mine.txt", SampleText(16384, 1));
  const RunWorld::Arguments mine = {"--max-tokens-per-second", "640", "--data", world.PathOf("mine.txt")};
  world.StartWorker("a", mine);
  world.AwaitRounds(1);
  // The worker looks again whenever it begins a session.
  world.WriteFile("mine.txt", SampleText(16384, 2));
  world.coordinator().Kill();
  ASSERT_TRUE(world.RestartCoordinator());
  ExpectError(&world.worker("a"), kBadInput, {"mine.txt", "changed since the run began"});
  // As it was, it is welcome again.
  const auto before = world.Ask();
  ASSERT_TRUE(before.ok()) << before.status();
  world.WriteFile("mine.txt", SampleText(16384, 1));
  world.StartWorker("a", mine);
  world.AwaitRounds(before->rounds_committed() + 1);
}

TEST(BadInputTest, ATakenPortIsNamed) {
  RunWorld world;
  ASSERT_TRUE(world.StartCoordinator(RunShape()));
  const auto second = world.Start({"coordinator", world.PathOf("run.textproto"), "--listen",
                                   world.address().ToString(), "--state-dir", world.PathOf("other")});
  ExpectError(second.get(), kFailed, {world.address().ToString(), "Address already in use"});
  EXPECT_TRUE(world.Ask().ok()) << "the first one goes on";
}

TEST(BadInputTest, ARunFileMayChangeOnlyWhereItIsSafe) {
  RunWorld world;
  RunShape shape;
  shape.sites = 1;
  shape.rounds = 6;
  ASSERT_TRUE(world.StartCoordinator(shape));
  world.StartWorker("a", kPaced);
  world.AwaitRounds(2);
  world.coordinator().Signal(SIGTERM);
  EXPECT_EQ(world.coordinator().Wait(), 0);
  RunShape changed = shape;
  changed.steps = 6;
  world.WriteFile("changed.textproto", RunText(changed));
  ExpectError(CoordinatorOn(&world, "changed.textproto").get(), kBadInput,
              {"rounds.inner_steps_per_round", "5", "6"});
  changed = shape;
  changed.rounds = 8;
  std::string text = RunText(changed);
  text.replace(text.find("seconds: 30"), 11, "seconds: 40");
  world.WriteFile("run.textproto", text);
  ASSERT_TRUE(world.RestartCoordinator());
  EXPECT_EQ(world.AwaitFinished().rounds_committed(), 8) << "nothing was lost, and the new end counts";
  world.ExpectWorkersDone();
}

TEST(BadInputTest, PlainTextBeyondLoopbackMustBeSaidAloud) {
  RunWorld world;
  world.WriteFile("run.textproto", RunText(RunShape()));
  world.WriteFile("text.txt", SampleText(4096, 1));
  const auto coordinator = world.Start({"coordinator", world.PathOf("run.textproto"), "--listen", "0.0.0.0:0",
                                        "--state-dir", world.PathOf("state")});
  const auto worker = world.Start(
      {"worker", "isthmus://far.example.org:1/e2e", "--site", "x", "--data", world.PathOf("text.txt")});
  ExpectError(coordinator.get(), kBadInput, {"0.0.0.0:0", "--insecure"});
  ExpectError(worker.get(), kBadInput, {"far.example.org", "--insecure"});
}

}  // namespace
}  // namespace isthmus
