#include "daemon/training/learning_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "daemon/training/toy_trainer.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

class LearningBenchTest : public testing::Test {
 protected:
  LearningBenchTest() {
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
    options_.base.sites = 2;
    options_.base.inner_steps = 5;
    options_.base.sequences = 2;
    options_.base.tokens = 10 * 2 * 5 * 2 * 8;
    options_.rates = {0.01, 0.1};
    options_.seeds = 2;
    options_.clock = &clock_;
    options_.make_trainer =
        [this](absl::Span<const float> initial) -> absl::StatusOr<std::unique_ptr<Trainer>> {
      ++runs_;
      ToyOptions toy;
      toy.vocabulary = 32;
      const TensorTable table = TensorTable::ForModel(options_.shape).value();
      return std::unique_ptr<Trainer>(ToyTrainer::Create(table, toy, initial).value());
    };
  }

  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    std::ifstream in(options_.results_path);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }

  FakeClock clock_;
  LearningBenchOptions options_;
  int runs_ = 0;
};

TEST_F(LearningBenchTest, RunsTheGridOnOneSeedAndMoreSeedsAtTheBestRate) {
  options_.forms = {LearningForm::kSynchronous, LearningForm::kSparse};
  const auto table = RunLearningBench(options_);
  ASSERT_TRUE(table.ok()) << table.status();
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 6);
  EXPECT_THAT(lines[0], HasSubstr("\"key\": \"synchronous rate=0.01 seed=0"));
  EXPECT_THAT(lines[1], HasSubstr("\"key\": \"synchronous rate=0.1 seed=0"));
  EXPECT_THAT(lines[2], HasSubstr("\"key\": \"synchronous rate=0.1 seed=1"));
  EXPECT_THAT(lines[5], HasSubstr("\"key\": \"sparse rate=0.1 seed=1"));
  EXPECT_THAT(lines[5], HasSubstr("\"k\": 512, \"alpha\": 1"));
  EXPECT_THAT(*table, HasSubstr("synchronous          0.1      2"));
}

TEST_F(LearningBenchTest, WhatIsFinishedIsNotRunAgain) {
  options_.forms = {LearningForm::kSynchronous};
  const auto first = RunLearningBench(options_);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(runs_, 3);
  const auto second = RunLearningBench(options_);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(runs_, 3);
  EXPECT_EQ(*first, *second);
  // Another length is another comparison.
  options_.base.tokens *= 2;
  ASSERT_TRUE(RunLearningBench(options_).ok());
  EXPECT_EQ(runs_, 6);
}

TEST_F(LearningBenchTest, ALineCutOffByAKillIsRunAgain) {
  options_.forms = {LearningForm::kSynchronous};
  options_.rates = {0.1};
  options_.seeds = 1;
  ASSERT_TRUE(RunLearningBench(options_).ok());
  const std::string line = Lines()[0];
  std::ofstream(options_.results_path, std::ios::trunc) << line.substr(0, line.size() / 2) << "\n";
  ASSERT_TRUE(RunLearningBench(options_).ok());
  EXPECT_EQ(runs_, 2);
}

TEST_F(LearningBenchTest, ADivergedRunIsRecordedAndNeverTheBest) {
  options_.forms = {LearningForm::kSynchronous};
  options_.rates = {1e300, 0.1};
  options_.seeds = 1;
  const auto table = RunLearningBench(options_);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(Lines()[0], HasSubstr("\"loss\": null"));
  EXPECT_THAT(*table, HasSubstr("synchronous          0.1      1"));
}

TEST_F(LearningBenchTest, AgreementTakesTheStudysSettings) {
  const LearningBenchOptions o = AgreementWithStudy(options_);
  EXPECT_TRUE(o.is_study_split);
  EXPECT_EQ(o.base.kept_per_block, 512);
  EXPECT_EQ(o.base.outer_rate, 1);
  EXPECT_EQ(o.base.last_codec, "");
  // 600 inner steps, 40 rounds.
  EXPECT_EQ(o.base.tokens, 600 * 3 * o.base.sequences * 128);
}

TEST_F(LearningBenchTest, MissingPartsAndFilesAreErrors) {
  options_.rates.clear();
  EXPECT_EQ(RunLearningBench(options_).status().code(), absl::StatusCode::kInvalidArgument);
  options_.rates = {0.1};
  options_.data_path += ".none";
  EXPECT_EQ(RunLearningBench(options_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(LearningBenchTest, AResultsFileThatCannotBeWrittenIsRefusedByNameBeforeAnyTraining) {
  std::ofstream(options_.results_path) << "a file";
  for (const std::string& path : {options_.results_path + "/below.jsonl", testing::TempDir()}) {
    options_.results_path = path;
    const absl::Status status = RunLearningBench(options_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("results file " + path + ": cannot be opened: "));
    EXPECT_EQ(runs_, 0);
  }
}

TEST_F(LearningBenchTest, AFileOfOtherLinesIsNoResultsFileAndStaysAsItIs) {
  options_.forms = {LearningForm::kSynchronous};
  options_.rates = {0.1};
  options_.seeds = 1;
  ASSERT_TRUE(RunLearningBench(options_).ok());
  const std::string ours = Lines()[0];
  for (const std::string& other :
       {std::string("In the beginning\n"), std::string("{}\n"), std::string("\0\n", 2)}) {
    runs_ = 0;
    const std::string whole = ours + "\n\n" + other;
    std::ofstream(options_.results_path, std::ios::trunc) << whole;
    const absl::Status status = RunLearningBench(options_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_EQ(status.message(),
              "results file " + options_.results_path + ", line 3: is no result of bench learning");
    EXPECT_EQ(runs_, 0);
    EXPECT_EQ(std::filesystem::file_size(options_.results_path), whole.size());
  }
}

TEST(LearningTable, MeansAndSpreadsComeFromTheBestRate) {
  const auto line = [](const char* rate, int seed, const char* loss) {
    return std::string(
               "{\"key\": \"k\", \"setting\": \"s\", \"group\": \"g\", \"form\": \"dense\", \"rate\": ") +
           rate + ", \"seed\": " + std::to_string(seed) + ", \"loss\": " + loss +
           ", \"rounds\": 40, \"k\": 0, \"alpha\": 1, \"up_bytes\": 2.5, \"down_bytes\": 3.5}";
  };
  const std::string table = LearningTable(
      {line("0.1", 0, "2.0"), line("0.2", 0, "1.5"), line("0.4", 0, "null"), line("0.2", 1, "1.7")});
  EXPECT_THAT(
      table,
      HasSubstr(
          "dense                0.2      2   1.6000   0.2000      40      0      1    2.5000    3.5000"));
}

}  // namespace
}  // namespace isthmus
