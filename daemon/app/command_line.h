// The command line: subcommands with flags, each of which is also an environment variable. The only door to
// CLI11.
//
// --max-tokens-per-second of any subcommand is ISTHMUS_MAX_TOKENS_PER_SECOND; a positional RUN_FILE is
// ISTHMUS_RUN_FILE. What is typed wins over the environment. A variable that begins with ISTHMUS_ and belongs
// to no flag is refused by name, so that a misspelt one is never silently without effect.
#ifndef ISTHMUS_DAEMON_APP_COMMAND_LINE_H_
#define ISTHMUS_DAEMON_APP_COMMAND_LINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace isthmus {

enum class Presence { kOptional, kRequired };

// One subcommand while it is being described. The targets must outlive CommandLine::Run and keep their value
// when the flag is absent, which is the default shown by --help. `name` is the flag without dashes.
class Command {
 public:
  // A word without a dash, at its place among the positional ones; `name` in lower case with underscores.
  void Positional(const std::string& name, std::string* target, const std::string& help,
                  Presence presence = Presence::kRequired);
  // Not an empty one.
  void Text(const std::string& name, std::string* target, const std::string& help,
            Presence presence = Presence::kOptional);
  // One of `words`.
  void Choice(const std::string& name, std::string* target, const std::vector<std::string>& words,
              const std::string& help);
  // A whole number within [low, high].
  void Number(const std::string& name, int64_t* target, int64_t low, int64_t high, const std::string& help);
  // A finite number within [low, high].
  void Real(const std::string& name, double* target, double low, double high, const std::string& help);
  // "90s", "5m", "1h30m"; not negative.
  void Duration(const std::string& name, absl::Duration* target, const std::string& help);
  void Flag(const std::string& name, bool* target, const std::string& help);

  // What the command does, where Add was not told.
  void Runs(std::function<int()> run);
  // Names of the flags that were given, on the line or in the environment. For `run`.
  std::set<std::string> Given() const;

  // A subcommand of this one, which then needs one.
  Command* Add(const std::string& name, const std::string& help, std::function<int()> run);

 private:
  friend class CommandLine;
  Command(CLI::App* app, std::function<int()>* chosen, std::vector<std::string>* variables)
      : app_(app), chosen_(chosen), variables_(variables) {}
  void Finish(CLI::Option* option, const std::string& name, Presence presence);

  CLI::App* const app_;
  std::function<int()>* const chosen_;
  std::vector<std::string>* const variables_;
  std::vector<std::unique_ptr<Command>> commands_;
};

// The whole command line. Not thread-safe.
class CommandLine {
 public:
  explicit CommandLine(const std::string& description);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // `run` is called once everything is parsed, and gives the exit code.
  Command* Add(const std::string& name, const std::string& help, std::function<int()> run);

  // Parses and runs. `environment` ends with a null pointer, as main's does; values are read with getenv.
  // Help goes to `out` with code 0, complaints to `error` with kExitBadInput.
  int Run(int argc, const char* const* argv, const char* const* environment, std::ostream& out,
          std::ostream& error);

 private:
  std::unique_ptr<CLI::App> app_;
  std::function<int()> chosen_;
  std::vector<std::string> variables_;
  std::unique_ptr<Command> root_;
};

// The variable of a flag: "give-up-after" is ISTHMUS_GIVE_UP_AFTER.
std::string VariableOf(const std::string& name);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_COMMAND_LINE_H_
