// Runs every scenario file of this folder and compares what comes out with what the file says.
//
// A file tells a story in comments (#), commands (> …) and the lines each command answers with. To write the
// answers anew after a change that is meant (then read the difference before committing it):
//   ISTHMUS_REWRITE=1 bazel run //tests/sim/scenarios:scenario_test
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tests/sim/scenarios/scenario_world.h"

namespace isthmus {
namespace {

constexpr char kFolder[] = "tests/sim/scenarios";

std::vector<std::string> ScenarioNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The file as it would be with the answers that the cores give now.
std::string Play(absl::string_view text) {
  ScenarioWorld world;
  std::string played;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, "> ")) {
      absl::StrAppend(&played, line, "\n", world.Run(line.substr(2)));
    } else if (line.empty() || absl::StartsWith(line, "#")) {
      absl::StrAppend(&played, line, "\n");
    }
  }
  while (absl::EndsWith(played, "\n\n")) played.pop_back();
  return played;
}

class ScenarioTest : public testing::TestWithParam<std::string> {};

TEST_P(ScenarioTest, TellsTheStoryInItsFile) {
  const std::string path = absl::StrCat(kFolder, "/", GetParam(), ".txt");
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  ASSERT_TRUE(absl::StartsWith(text.str(), "#")) << path << " must begin with the story, in comments";
  const std::string played = Play(text.str());
  const char* root = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (std::getenv("ISTHMUS_REWRITE") != nullptr && root != nullptr) {
    std::ofstream(absl::StrCat(root, "/", path)) << played;
    return;
  }
  EXPECT_EQ(text.str(), played);
}

INSTANTIATE_TEST_SUITE_P(Files, ScenarioTest, testing::ValuesIn(ScenarioNames()),
                         [](const auto& info) { return info.param; });

TEST(ScenarioFolder, HoldsItsScenarios) { EXPECT_GE(ScenarioNames().size(), 12); }

}  // namespace
}  // namespace isthmus
