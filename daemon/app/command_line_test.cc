#include "daemon/app/command_line.h"

#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "daemon/app/exit_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

// A worker-like command that remembers what it was given.
class CommandLineTest : public ::testing::Test {
 protected:
  CommandLineTest() {
    Command* go = line_.Add("go", "Goes.", [this] {
      ++runs_;
      return 7;
    });
    go->Positional("place", &place_, "where to");
    go->Text("name", &name_, "who");
    go->Choice("form", &form_, {"text", "json"}, "how it looks");
    go->Number("steps", &steps_, 1, 100, "how many");
    go->Real("share", &share_, 0, 1, "of what");
    go->Duration("give-up-after", &patience_, "when to stop");
    go->Flag("insecure", &insecure_, "plain text");
    Command* bench = line_.Add("bench", "Measures.", nullptr);
    bench->Add("codec", "The codec.", [this] {
      runs_ += 100;
      return 0;
    });
  }

  // `variables` are set for the time of the call.
  int Run(std::vector<const char*> words, const std::vector<std::string>& variables = {}) {
    words.insert(words.begin(), "isthmus");
    std::vector<const char*> environment;
    for (const std::string& variable : variables) {
      environment.push_back(variable.c_str());
      const size_t equals = variable.find('=');
      setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
    }
    environment.push_back(nullptr);
    const int code =
        line_.Run(static_cast<int>(words.size()), words.data(), environment.data(), out_, error_);
    for (const std::string& variable : variables) unsetenv(variable.substr(0, variable.find('=')).c_str());
    return code;
  }

  std::string place_, name_ = "nobody", form_ = "text";
  int64_t steps_ = 3;
  double share_ = 0.5;
  absl::Duration patience_ = absl::Minutes(5);
  bool insecure_ = false;
  int runs_ = 0;
  std::ostringstream out_, error_;
  CommandLine line_{"A test."};
};

TEST_F(CommandLineTest, FlagsReachTheirTargetsAndTheCommandRunsOnce) {
  EXPECT_EQ(Run({"go", "home", "--name", "me", "--form=json", "--steps", "12", "--share", "0.25",
                 "--give-up-after", "1m30s", "--insecure"}),
            7);
  EXPECT_EQ(runs_, 1);
  EXPECT_EQ(place_, "home");
  EXPECT_EQ(name_, "me");
  EXPECT_EQ(form_, "json");
  EXPECT_EQ(steps_, 12);
  EXPECT_EQ(share_, 0.25);
  EXPECT_EQ(patience_, absl::Seconds(90));
  EXPECT_TRUE(insecure_);
}

TEST_F(CommandLineTest, ACommandKnowsWhichFlagsWereGiven) {
  Command* stay = line_.Add("stay", "Stays.", nullptr);
  std::set<std::string> given;
  stay->Text("with", &name_, "whom");
  stay->Number("days", &steps_, 1, 100, "how long");
  stay->Flag("alone", &insecure_, "or not");
  stay->Runs([&] {
    given = stay->Given();
    return 5;
  });
  EXPECT_EQ(Run({"stay", "--days", "3"}, {"ISTHMUS_WITH=me"}), 5);
  EXPECT_THAT(given, ::testing::ElementsAre("days", "with"));
}

TEST_F(CommandLineTest, WhatIsAbsentKeepsItsDefault) {
  EXPECT_EQ(Run({"go", "home"}), 7);
  EXPECT_EQ(name_, "nobody");
  EXPECT_EQ(steps_, 3);
  EXPECT_EQ(patience_, absl::Minutes(5));
  EXPECT_FALSE(insecure_);
}

TEST_F(CommandLineTest, EveryFlagIsAlsoAnEnvironmentVariable) {
  EXPECT_EQ(Run({"go"}, {"ISTHMUS_PLACE=home", "ISTHMUS_NAME=me", "ISTHMUS_FORM=json", "ISTHMUS_STEPS=12",
                         "ISTHMUS_SHARE=1", "ISTHMUS_GIVE_UP_AFTER=2h", "ISTHMUS_INSECURE=true"}),
            7)
      << error_.str();
  EXPECT_EQ(place_, "home");
  EXPECT_EQ(name_, "me");
  EXPECT_EQ(form_, "json");
  EXPECT_EQ(steps_, 12);
  EXPECT_EQ(share_, 1);
  EXPECT_EQ(patience_, absl::Hours(2));
  EXPECT_TRUE(insecure_);
}

TEST_F(CommandLineTest, WhatIsTypedWinsOverTheEnvironment) {
  EXPECT_EQ(Run({"go", "home", "--steps", "5"}, {"ISTHMUS_STEPS=12"}), 7);
  EXPECT_EQ(steps_, 5);
}

TEST_F(CommandLineTest, AVariableThatBelongsToNoFlagIsRefusedByName) {
  EXPECT_EQ(Run({"go", "home"}, {"ISTHMUS_STPES=12", "PATH_TO=x"}), kExitBadInput);
  EXPECT_THAT(error_.str(), HasSubstr("ISTHMUS_STPES"));
  EXPECT_EQ(runs_, 0);
}

TEST_F(CommandLineTest, TheBuildsOwnVariableIsPassedOver) {
  EXPECT_EQ(Run({"go", "home"}, {"ISTHMUS_LIBTORCH=/opt/libtorch"}), 7);
}

TEST_F(CommandLineTest, BadValuesAreRefusedNamingFlagAndValue) {
  const std::vector<std::pair<std::vector<const char*>, std::string>> cases = {
      {{"go", "home", "--steps", "0"}, "--steps: \"0\" is no whole number from 1 to 100"},
      {{"go", "home", "--steps", "many"}, "--steps: \"many\" is no whole number"},
      {{"go", "home", "--steps", "99999999999999999999"}, "--steps: "},
      {{"go", "home", "--share", "1.5"}, "--share: \"1.5\" is no number from 0 to 1"},
      {{"go", "home", "--share", "nan"}, "--share: \"nan\" is no number"},
      {{"go", "home", "--give-up-after", "soon"}, "--give-up-after: \"soon\" is no length of time"},
      {{"go", "home", "--give-up-after", "-5s"}, "--give-up-after"},
      {{"go", "home", "--name", ""}, "--name: must not be empty"},
      {{"go", "home", "--form", "xml"}, "--form: \"xml\" is none of text, json"},
      {{"go", "home", "--speed", "1"}, "--speed"},
      {{"go", "home", "away"}, "away"},
      {{"go"}, "place is required"},
      {{"fly"}, "there is no command \"fly\"; see isthmus --help"},
      {{"bench", "codecs"}, "there is no command \"bench codecs\"; see isthmus bench --help"},
      {{"bench"}, "subcommand"},
      {{}, "subcommand"},
  };
  for (const auto& [words, complaint] : cases) {
    error_.str("");
    EXPECT_EQ(Run(words), kExitBadInput) << complaint;
    EXPECT_THAT(error_.str(), HasSubstr(complaint));
  }
  EXPECT_EQ(runs_, 0);
}

TEST_F(CommandLineTest, ABadValueInTheEnvironmentIsRefusedToo) {
  EXPECT_EQ(Run({"go", "home"}, {"ISTHMUS_STEPS=0"}), kExitBadInput);
  EXPECT_THAT(error_.str(), HasSubstr("\"0\" is no whole number"));
}

TEST_F(CommandLineTest, HelpShowsDefaultsAndVariablesAndEndsWellWithoutRunning) {
  EXPECT_EQ(Run({"go", "--help"}), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr("--give-up-after"));
  EXPECT_THAT(out_.str(), HasSubstr("5m"));
  EXPECT_THAT(out_.str(), HasSubstr("ISTHMUS_GIVE_UP_AFTER"));
  EXPECT_THAT(out_.str(), HasSubstr("Exit codes"));
  EXPECT_EQ(runs_, 0);
}

TEST_F(CommandLineTest, CommandsMayHaveCommands) {
  EXPECT_EQ(Run({"bench", "codec"}), 0);
  EXPECT_EQ(runs_, 100);
}

TEST(ExitCode, TheUsersMistakesAreTwoAndOursOne) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("x")), 2);
  EXPECT_EQ(ExitCodeOf(absl::FailedPreconditionError("x")), 2);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("x")), 2);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("x")), 1);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("x")), 1);
}

}  // namespace
}  // namespace isthmus
