#include "daemon/app/run_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace isthmus {
namespace {

using ::testing::HasSubstr;

RunFile RunOf(const std::string& text) {
  const RunFileReading reading = ReadRunFile(text);
  EXPECT_FALSE(reading.has_errors()) << FindingsText("run", reading.findings);
  return reading.run;
}

constexpr char kGood[] = "name: \"demo\"\nrounds { total_rounds: 40 }\n";

std::string FileWith(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(RunFileTest, AGoodFileComesBackWithItsDefaults) {
  const RunFile run = RunOf(kGood);
  EXPECT_EQ(run.name(), "demo");
  EXPECT_EQ(run.model().width(), 128);
}

TEST(RunFileTest, MistakesOfFormAndOfSenseComeTogetherInTheOrderOfTheirLines) {
  const RunFileReading reading = ReadRunFile(
      "name: \"demo\"\nmodel { heads: 3 }\nsede: 4\nrounds { total_rounds: 0 }\nouter { form: NESTEROV }\n");
  EXPECT_TRUE(reading.has_errors());
  EXPECT_EQ(
      FindingsText("a.run", reading.findings),
      "a.run:2:9: error: model.heads: 3 heads do not divide a width of 128\n"
      "a.run:3:1: error: RunFile has no field \"sede\"; did you mean \"seed\"?\n"
      "a.run:4:10: error: rounds.total_rounds: is 0, must be between 1 and 1000000000\n"
      "a.run:5:9: warning: outer.form: NESTEROV is meant for the dense codec; with a sparse one it was worse "
      "than PLAIN\n");
}

TEST(RunFileTest, WarningsAloneDoNotStopARun) {
  const std::string path = FileWith("warned.run", std::string(kGood) + "outer { momentum: 0.5 }\n");
  std::string warnings;
  EXPECT_EQ(LoadRunFile(path, &warnings).status(), absl::OkStatus());
  EXPECT_EQ(warnings, path + ":3:9: warning: outer.momentum: is used by the NESTEROV form only\n");
  EXPECT_EQ(LoadRunFile(path, nullptr).status(), absl::OkStatus());
}

TEST(RunFileTest, AFileThatCannotBeReadIsNamed) {
  const std::string missing = ::testing::TempDir() + "/missing.run";
  EXPECT_EQ(LoadRunFile(missing, nullptr).status(),
            absl::NotFoundError("run file " + missing + ": No such file or directory"));
  EXPECT_EQ(LoadRunFile(::testing::TempDir(), nullptr).status().code(), absl::StatusCode::kUnavailable);
  const std::string huge = FileWith("huge.run", std::string((1 << 20) + 1, '#'));
  EXPECT_THAT(std::string(LoadRunFile(huge, nullptr).status().message()),
              HasSubstr("longer than 1048576 bytes"));
}

TEST(RunFileTest, ErrorsAreTheStatussMessage) {
  const std::string path = FileWith("bad.run", "name: \"demo\"\n");
  const absl::StatusOr<RunFile> run = LoadRunFile(path, nullptr);
  EXPECT_EQ(run.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(run.status().message()), HasSubstr(path + ":1:1: error: rounds: neither"));
  EXPECT_NE(run.status().message().back(), '\n') << "whoever prints it ends the line";
}

TEST(RunFileTest, ARunGoesOnWithChangesThatAreSafe) {
  const RunFile old_run = RunOf(kGood);
  EXPECT_EQ(CompareForRestart(old_run, old_run), absl::OkStatus());
  EXPECT_EQ(CompareForRestart(old_run, RunOf("name: \"demo\" log_level: \"debug\" rounds { total_rounds: 80 "
                                             "total_tokens: 1000000 longest_round { seconds: 30 } }")),
            absl::OkStatus());
  EXPECT_EQ(CompareForRestart(old_run, RunOf("name: \"demo\" rounds { total_tokens: 1000000 }")),
            absl::OkStatus());
}

TEST(RunFileTest, AnyOtherChangeIsRefusedNamingTheFirstField) {
  const RunFile old_run = RunOf(kGood);
  const auto refusal = [&](const std::string& more) {
    const absl::Status status = CompareForRestart(old_run, RunOf(std::string(kGood) + more));
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    return std::string(status.message());
  };
  EXPECT_EQ(refusal("model { width: 64 } seed: 1"),
            "the run began with another run file: model.width was 128 and is now 64");
  EXPECT_EQ(refusal("seed: 2 model { width: 64 }"),
            "the run began with another run file: seed was 1 and is now 2");
  EXPECT_THAT(refusal("exchange { averaging: CONTRIBUTORS }"),
              HasSubstr("exchange.averaging was PEERS and is now CONTRIBUTORS"));
  EXPECT_THAT(refusal("outer { rate: 1.5 }"), HasSubstr("outer.rate was absent and is now 1.5"));
  EXPECT_THAT(refusal("membership { heartbeat { nanos: 500000000 } }"),
              HasSubstr("membership.heartbeat was { seconds: 1 } and is now { nanos: 500000000 }"));
}

TEST(RunFileTest, TheEndOfAFinishedRunCannotBeMovedFurtherOut) {
  const RunFile old_run = RunOf("name: \"demo\" rounds { total_rounds: 40 total_tokens: 5000 }");
  const auto compare = [&](const std::string& rounds) {
    return CompareForFinishedRun(old_run, RunOf("name: \"demo\" rounds { " + rounds + " }"), 40);
  };
  EXPECT_EQ(compare("total_rounds: 40 total_tokens: 5000"), absl::OkStatus());
  EXPECT_EQ(compare("total_rounds: 30 total_tokens: 4000"), absl::OkStatus());
  EXPECT_EQ(
      compare("total_rounds: 41 total_tokens: 5000"),
      absl::FailedPreconditionError(
          "the run is finished, after 40 rounds, and cannot go on: rounds.total_rounds was 40 and is now "
          "41; set it back, or begin another run with --init final.safetensors on another --state-dir"));
  EXPECT_THAT(std::string(compare("total_rounds: 40").message()),
              HasSubstr("rounds.total_tokens was 5000 and is now absent; "));
}

}  // namespace
}  // namespace isthmus
