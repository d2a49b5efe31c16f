#include "daemon/training/learning_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "daemon/training/difference_dump.h"
#include "daemon/training/toy_trainer.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LearningMatrixTest : public testing::Test {
 protected:
  LearningMatrixTest() {
    const std::string base =
        testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
    options_.data_path = base + ".tokens";
    options_.results_path = base + ".jsonl";
    std::remove(options_.results_path.c_str());
    std::ofstream out(options_.data_path, std::ios::binary | std::ios::trunc);
    for (int i = 0; i < 20000; ++i) out.put(static_cast<char>(i * i % 31));
    options_.shape.vocabulary = 32;
    options_.shape.context = 8;
    options_.shape.width = 8;
    options_.shape.heads = options_.shape.kv_heads = 2;
    options_.shape.layers = 1;
    options_.shape.feed_forward = 8;
    options_.seeds = 2;
    options_.clock = &clock_;
    options_.report = [this](absl::string_view text) { said_.emplace_back(text); };
    options_.make_trainer =
        [this](absl::Span<const float> initial) -> absl::StatusOr<std::unique_ptr<Trainer>> {
      ++trainers_;
      ToyOptions toy;
      toy.vocabulary = 32;
      const TensorTable table = TensorTable::ForModel(options_.shape).value();
      return std::unique_ptr<Trainer>(ToyTrainer::Create(table, toy, initial).value());
    };
    LearningCase c;
    c.sites = 2;
    c.inner_steps = 5;
    c.sequences = 2;
    c.tokens = 10 * 2 * 5 * 2 * 8;
    c.peak_rate = 0.1;
    c.kept_per_block = 512;
    c.outer_rate = 1;
    LearningCase other = c;
    other.value_bits = 2;
    options_.groups = {{"one", "which bits"}, {"two", "which form"}};
    options_.cells = {{"one", "1 bit", c}, {"one", "2 bits", other}, {"two", "sparse", c}};
    c.form = LearningForm::kSynchronous;
    options_.cells.push_back({"two", "synchronous", c});
  }

  FakeClock clock_;
  LearningMatrixOptions options_;
  std::vector<std::string> said_;
  int trainers_ = 0;
};

TEST_F(LearningMatrixTest, RunsEachCaseOnceASeedBeforeTheNext) {
  const auto report = RunLearningMatrix(options_);
  ASSERT_TRUE(report.ok()) << report.status();
  const std::vector<std::string> lines = ReadLearningLines(options_.results_path);
  ASSERT_EQ(lines.size(), 6);  // three different cases, two seeds
  EXPECT_THAT(lines[0], HasSubstr("\"key\": \"sparse rate=0.1 seed=0"));
  EXPECT_THAT(lines[1], HasSubstr("bits=2"));
  EXPECT_THAT(lines[2], HasSubstr("\"key\": \"synchronous rate=0.1 seed=0"));
  EXPECT_THAT(lines[5], HasSubstr("\"key\": \"synchronous rate=0.1 seed=1"));
  EXPECT_THAT(said_[1], HasSubstr("run 2 of 6, about 0 min left: sparse rate=0.1 seed=0"));
  EXPECT_THAT(report->table, HasSubstr("\none: which bits\n"));
  EXPECT_THAT(report->json, HasSubstr("{\"group\": \"two\", \"name\": \"synchronous\", \"seeds\": 2, "));
}

TEST_F(LearningMatrixTest, AFinishedMatrixRunsNothing) {
  const auto first = RunLearningMatrix(options_);
  const int made = trainers_;
  const auto second = RunLearningMatrix(options_);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(trainers_, made);
  EXPECT_EQ(first->table, second->table);
}

TEST_F(LearningMatrixTest, OnlyTheGroupsAskedForAreRunAndShown) {
  options_.only = {"two"};
  const auto report = RunLearningMatrix(options_);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(ReadLearningLines(options_.results_path).size(), 4);
  EXPECT_THAT(report->table, Not(HasSubstr("which bits")));
  options_.only = {"three"};
  EXPECT_EQ(RunLearningMatrix(options_).status().message(),
            "bench learning: no group \"three\", but one, two");
}

TEST_F(LearningMatrixTest, ACaseThatTwoProcessesWantIsRunByOne) {
  // The second book plays the second process: the claim is the open file's, not the process's.
  const auto other = LearningBook::Open(options_).value();
  std::string seen = "none";
  bool is_inside = false;
  const auto make = options_.make_trainer;
  options_.make_trainer = [&](absl::Span<const float> initial) -> absl::StatusOr<std::unique_ptr<Trainer>> {
    if (!is_inside) {
      is_inside = true;
      seen = other->LineOf(options_.cells[0].c).value();
    }
    return make(initial);
  };
  const auto book = LearningBook::Open(options_).value();
  const std::string line = book->LineOf(options_.cells[0].c).value();
  EXPECT_EQ(seen, "");
  EXPECT_EQ(other->LineOf(options_.cells[0].c).value(), line);
  EXPECT_EQ(ReadLearningLines(options_.results_path).size(), 1);
}

TEST_F(LearningMatrixTest, ACodecThisBuildDoesNotKnowIsSkippedAndSaid) {
  options_.only = {"one"};
  options_.cells[1].c.codec = "topk(k=1,block=4096)|levels(bits=17)";
  const auto report = RunLearningMatrix(options_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(said_, testing::Contains(HasSubstr("skipped: ")));
  EXPECT_THAT(report->table, testing::ContainsRegex("2 bits +-\n"));
}

TEST_F(LearningMatrixTest, ADumpHasTwoNeighbouringRoundsNearStartMiddleAndEndOfEverySite) {
  const std::string folder = options_.data_path + ".differences";
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(DumpLearningDifferences(options_, folder).ok());
  const DifferenceSet set = OpenDifferences(folder).value();
  std::vector<std::pair<int64_t, int64_t>> taken, expected;
  for (const DumpedDifference& one : set.differences) taken.emplace_back(one.round, one.site);
  for (int64_t round : {1, 2, 5, 6, 7, 8}) {
    expected.emplace_back(round, 0);
    expected.emplace_back(round, 1);
  }
  EXPECT_EQ(taken, expected);
  EXPECT_EQ(set.layout.total(), TensorTable::ForModel(options_.shape)->layout().total());
  EXPECT_TRUE(LoadDifference(set, set.differences[11]).ok());
  EXPECT_FALSE(std::filesystem::exists(options_.results_path));
}

TEST_F(LearningMatrixTest, ARunWithoutRoundsHasNoDifferencesToDump) {
  const absl::Status status =
      DumpDifferencesOf(options_, options_.cells[3].c, options_.data_path + ".differences");
  EXPECT_EQ(status, absl::InvalidArgumentError("bench learning: synchronous training has no differences"));
  EXPECT_EQ(trainers_, 0);
}

TEST_F(LearningMatrixTest, PathsThatCannotBeWrittenAreRefusedByNameBeforeAnyTraining) {
  const std::string results = options_.results_path, below = results + "/below";
  std::ofstream{results};
  const absl::Status dump = DumpLearningDifferences(options_, below);
  EXPECT_EQ(dump.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(dump.message()), HasSubstr("differences folder " + below));
  options_.results_path = below;
  const absl::Status run = RunLearningMatrix(options_).status();
  EXPECT_EQ(run.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(run.message()), HasSubstr("results file " + below));
  EXPECT_EQ(trainers_, 0);
}

TEST_F(LearningMatrixTest, DifferencesAreTakenSeedBySeed) {
  const auto line = [this](int cell, int seed, const char* loss) {
    LearningCase c = options_.cells[cell].c;
    c.seed = seed;
    return "{\"key\": \"" + LearningCaseKey(c) + "\", \"setting\": \"s\", \"loss\": " + loss +
           ", \"rounds\": 10, \"up_bytes\": 0.5, \"down_bytes\": 0.25, \"run_up_bytes\": 4.5, "
           "\"run_down_bytes\": 2.25}";
  };
  const std::vector<std::string> lines = {line(0, 0, "1.0"), line(0, 1, "2.0"), line(1, 0, "1.25"),
                                          line(1, 1, "2.125")};
  options_.only = {"one"};
  EXPECT_THAT(
      LearningMatrixTable(options_, "s", lines),
      testing::ContainsRegex("2 bits +2   1.6875   0.8750  \\+0.1875   0.1250      10   0.5000   0.2500 "
                             "    4.50     2.25\n"));
  EXPECT_THAT(LearningMatrixTable(options_, "other", lines), testing::ContainsRegex("2 bits +-\n"));
}

TEST(LearningCells, EveryGroupHasRowsAndEveryRowAGroupAndNamesAreUnique) {
  std::set<std::string> groups, used, names;
  for (const LearningGroup& group : LearningGroups()) EXPECT_TRUE(groups.insert(group.name).second);
  for (const LearningCell& cell : LearningCells()) {
    EXPECT_TRUE(groups.count(cell.group)) << cell.group;
    used.insert(cell.group);
    EXPECT_TRUE(names.insert(cell.group + "/" + cell.name).second) << cell.name;
    EXPECT_EQ(cell.c.seed, 0);
  }
  EXPECT_EQ(used, groups);
}

TEST(LearningCells, TheModelIsTheStudysSmallOne) {
  EXPECT_EQ(TensorTable::ForModel(LearningMatrixShape())->layout().total(), 167360);
}

}  // namespace
}  // namespace isthmus
