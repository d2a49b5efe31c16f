#include "daemon/app/bench_flags.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

// As the command line would fill it in.
LearningBenchFlags Learning(const std::set<std::string>& given) {
  LearningBenchFlags flags;
  flags.given = given;
  const auto has = [&](const char* name) { return given.count(name) > 0; };
  flags.is_list = has("list");
  flags.is_matrix = has("matrix");
  flags.is_agreement = has("agreement");
  if (has("form")) flags.form = "sparse";
  if (has("group")) flags.groups = "forms";
  if (has("dump-differences")) flags.dump = "folder";
  if (has("json-out")) flags.json_out = "x.json";
  if (has("results")) flags.results = "x.jsonl";
  return flags;
}

TEST(BenchFlagsTest, FlagsOfAnotherStudyAreRefusedByName) {
  const std::vector<std::pair<std::set<std::string>, std::string>> cases = {
      {{"group"}, "without --matrix, --list or --dump-differences there is no --group"},
      {{"json-out"}, "without --matrix there is no --json-out"},
      {{"agreement", "group"}, "there is no --group"},
      {{"matrix", "agreement"}, "--matrix has runs of its own and takes no --agreement"},
      {{"matrix", "form"}, "--matrix has runs of its own and takes no --form"},
      {{"matrix", "width"}, "takes no --width"},
      {{"matrix", "layers"}, "takes no --layers"},
      {{"matrix", "kept"}, "takes no --kept"},
      {{"matrix", "tokens"}, "takes no --tokens"},
      {{"list", "form"}, "--list runs nothing and takes no --form"},
      {{"list", "json-out"}, "--list runs nothing and takes no --json-out"},
      {{"list", "dump-differences"}, "--list runs nothing and takes no --dump-differences"},
      {{"agreement", "tokens"}, "--agreement has settings of its own and takes no --tokens"},
      {{"agreement", "dump-differences"}, "without --form, takes no --agreement"},
      {{"dump-differences", "seeds"}, "--dump-differences makes one run and takes no --seeds"},
      {{"dump-differences", "form", "group"}, "--dump-differences with --form takes no --group"},
      {{"dump-differences", "group", "width"}, "without --form, takes no --width"},
  };
  for (const auto& [given, complaint] : cases) {
    const absl::Status status = CheckLearningFlags(Learning(given));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << complaint;
    EXPECT_THAT(std::string(status.message()), HasSubstr(complaint));
  }
}

TEST(BenchFlagsTest, FlagsThatGoTogetherAreTaken) {
  const std::vector<std::set<std::string>> cases = {
      {"data", "results"},
      {"form", "width", "layers", "kept", "tokens", "seeds"},
      {"agreement", "form"},
      {"matrix", "group", "seeds", "sequences", "json-out"},
      {"list", "group", "data", "results", "seeds"},
      {"dump-differences", "group", "matrix"},
      {"dump-differences", "form", "tokens", "width", "layers", "kept"},
  };
  for (const auto& given : cases) {
    EXPECT_TRUE(CheckLearningFlags(Learning(given)).ok()) << ::testing::PrintToString(given);
  }
}

TEST(BenchFlagsTest, FiguresAreNotWrittenOverTheRuns) {
  LearningBenchFlags flags = Learning({"matrix", "results", "json-out"});
  EXPECT_TRUE(CheckLearningFlags(flags).ok());
  flags.json_out = flags.results;
  EXPECT_THAT(std::string(CheckLearningFlags(flags).message()), HasSubstr("--results x.jsonl"));
}

TEST(BenchFlagsTest, OneCodecTakesNoFlagOfWhatItLeavesOut) {
  CodecBenchFlags flags;
  flags.given = {"check", "sizes-json-out"};
  EXPECT_TRUE(CheckCodecFlags(flags).ok());
  flags.spec = "topk(k=64)";
  EXPECT_EQ(CheckCodecFlags(flags).message(),
            "bench codec: --spec leaves out streams and speeds, and so takes no --check");
  flags.given = {"spec", "parameters", "repeats", "seed", "json-out"};
  EXPECT_TRUE(CheckCodecFlags(flags).ok());
}

}  // namespace
}  // namespace isthmus
