#include "daemon/app/validate_command.h"

#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

constexpr char kGood[] = R"pb(
  name: "kjv"
  model { width: 64 layers: 2 heads: 2 kv_heads: 2 feed_forward: 96 context: 16 vocabulary: 256 }
  rounds { total_rounds: 40 start_sites: 3 }
)pb";

class ValidateTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = ::testing::TempDir() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  absl::Status Run() { return Validate(options_, out_); }

  ValidateOptions options_;
  std::ostringstream out_;
};

TEST_F(ValidateTest, SaysWhatAGoodRunAmountsTo) {
  options_.run_file = Write("good.textproto", kGood);
  const absl::Status status = Run();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(out_.str(), HasSubstr("good.textproto: valid: run \"kjv\""));
  EXPECT_THAT(out_.str(), HasSubstr("40 rounds"));
  EXPECT_THAT(out_.str(), HasSubstr("k=512"));
}

TEST_F(ValidateTest, ReportsEveryMistakeAtOnceWithItsLine) {
  options_.run_file =
      Write("bad.textproto", "name: \"kjv\"\nmodel {\n  widht: 64\n}\nrounds { total_rounds: -1 }\n");
  const absl::Status status = Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("bad.textproto:3"), HasSubstr("widht")));
  EXPECT_THAT(std::string(status.message()), HasSubstr("bad.textproto:5"));
}

TEST_F(ValidateTest, ChecksDataAsAWorkerWould) {
  options_.run_file = Write("good.textproto", kGood);
  options_.data = Write("text", std::string(4000, 'a'));
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(out_.str(), HasSubstr("text: valid"));
  options_.data = Write("empty", "");
  EXPECT_THAT(std::string(Run().message()), HasSubstr("empty"));
  options_.data = ::testing::TempDir() + "/absent";
  EXPECT_THAT(std::string(Run().message()), HasSubstr("absent"));
}

TEST_F(ValidateTest, ShowsDefaultsWithoutARunFile) {
  options_.show_defaults = true;
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(out_.str(), HasSubstr("inner_steps_per_round"));
}

TEST_F(ValidateTest, NeedsSomethingToDo) { EXPECT_TRUE(absl::IsInvalidArgument(Run())); }

}  // namespace
}  // namespace isthmus
