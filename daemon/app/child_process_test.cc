#include "daemon/app/child_process.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "daemon/app/interrupt_watch.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);

ChildOptions Shell(const std::string& script, const std::string& log_name) {
  ChildOptions options;
  options.program = "/bin/sh";
  options.arguments = {"-c", script};
  options.log_path = testing::TempDir() + "/" + log_name;
  unlink(options.log_path.c_str());
  options.is_output_read = true;
  return options;
}

// All that the child writes until it closes its output.
std::string ReadOutput(ChildProcess* child) {
  std::string all;
  char piece[256];
  for (ssize_t got; (got = read(child->output(), piece, sizeof(piece))) > 0;) all.append(piece, got);
  return all;
}

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(ChildProcessTest, OutputIsReadAndErrorsGoToTheLog) {
  const ChildOptions options = Shell("echo said; echo complained >&2", "words.log");
  auto child = ChildProcess::Start(options);
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(ReadOutput(child->get()), "said\n");
  (*child)->Kill();
  EXPECT_TRUE((*child)->HasEnded());
  EXPECT_EQ(ReadFile(options.log_path), "complained\n");
}

TEST(ChildProcessTest, OutputThatIsNotReadGoesToTheLog) {
  ChildOptions options = Shell("echo said", "all.log");
  options.is_output_read = false;
  auto child = ChildProcess::Start(options);
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ((*child)->output(), -1);
  InterruptWatch watch;
  for (int i = 0; i < 3000 && !(*child)->HasEnded(); ++i) ASSERT_TRUE(watch.Wait(-1, kPatience / 3000).ok());
  EXPECT_TRUE((*child)->HasEnded());
  EXPECT_EQ(ReadFile(options.log_path), "said\n");
}

TEST(ChildProcessTest, OurOwnVariablesAreNotHandedOnAndTheGivenOnesWin) {
  setenv("ISTHMUS_SITE", "elsewhere", 1);
  setenv("CHILD_PROCESS_TEST", "ours", 1);
  ChildOptions options = Shell("echo \"$ISTHMUS_SITE,$CHILD_PROCESS_TEST,$ANOTHER\"", "environment.log");
  options.environment = {"ANOTHER=given"};
  auto child = ChildProcess::Start(options);
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(ReadOutput(child->get()), ",ours,given\n");
}

TEST(ChildProcessTest, AProcessThatWouldGoOnForEverIsGoneAfterKill) {
  auto child = ChildProcess::Start(Shell("echo up; exec cat /dev/zero >/dev/null", "endless.log"));
  ASSERT_TRUE(child.ok()) << child.status();
  char up[3];
  ASSERT_EQ(read((*child)->output(), up, 3), 3);
  EXPECT_FALSE((*child)->HasEnded());
  const pid_t pid = (*child)->pid();
  child->reset();
  EXPECT_NE(kill(pid, 0), 0);
}

TEST(ChildProcessTest, AProgramThatIsNotThereIsNamed) {
  ChildOptions options = Shell("", "none.log");
  options.program = "/nowhere/isthmus";
  const auto child = ChildProcess::Start(options);
  EXPECT_EQ(child.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(child.status().message(), "/nowhere/isthmus cannot be started: No such file or directory");
}

}  // namespace
}  // namespace isthmus
