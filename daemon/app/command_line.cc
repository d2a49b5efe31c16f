#include "daemon/app/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "daemon/app/exit_code.h"

namespace isthmus {
namespace {

// Variables of the build that may be set where a daemon is started.
constexpr absl::string_view kBuildVariables[] = {"ISTHMUS_LIBTORCH"};

constexpr char kFooter[] =
    "Every flag is also an environment variable: --state-dir is ISTHMUS_STATE_DIR.\n"
    "Exit codes: 0 done, 1 failed while running, 2 bad flag, file or other input.";

std::string CheckNumber(const std::string& text, int64_t low, int64_t high) {
  int64_t value = 0;
  if (absl::SimpleAtoi(text, &value) && value >= low && value <= high) return "";
  return absl::StrCat("\"", text, "\" is no whole number from ", low,
                      high == INT64_MAX ? " up" : absl::StrCat(" to ", high));
}

std::string CheckReal(const std::string& text, double low, double high) {
  double value = 0;
  if (absl::SimpleAtod(text, &value) && std::isfinite(value) && value >= low && value <= high) return "";
  return absl::StrFormat("\"%s\" is no number from %g%s", text, low,
                         std::isinf(high) ? " up" : absl::StrFormat(" to %g", high));
}

std::string CheckDuration(const std::string& text) {
  absl::Duration value;
  if (absl::ParseDuration(text, &value) && value >= absl::ZeroDuration()) return "";
  return absl::StrCat("\"", text, "\" is no length of time such as 90s, 5m or 1h30m");
}

std::string CheckWord(const std::string& text, const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), text) != words.end()) return "";
  return absl::StrCat("\"", text, "\" is none of ", absl::StrJoin(words, ", "));
}

}  // namespace

std::string VariableOf(const std::string& name) {
  return absl::StrCat("ISTHMUS_", absl::AsciiStrToUpper(absl::StrReplaceAll(name, {{"-", "_"}})));
}

void Command::Finish(CLI::Option* option, const std::string& name, Presence presence) {
  const std::string variable = VariableOf(name);
  option->envname(variable);
  if (presence == Presence::kRequired) option->required();
  variables_->push_back(variable);
}

void Command::Positional(const std::string& name, std::string* target, const std::string& help,
                         Presence presence) {
  Finish(app_->add_option(name, *target, help)->type_name(""), name, presence);
}

void Command::Text(const std::string& name, std::string* target, const std::string& help, Presence presence) {
  CLI::Option* option = app_->add_option("--" + name, *target, help)->type_name("TEXT");
  option->check([](const std::string& text) { return text.empty() ? "must not be empty" : ""; });
  if (!target->empty()) option->default_str(*target);
  Finish(option, name, presence);
}

void Command::Choice(const std::string& name, std::string* target, const std::vector<std::string>& words,
                     const std::string& help) {
  CLI::Option* option = app_->add_option("--" + name, *target, help)->type_name(absl::StrJoin(words, "|"));
  option->default_str(*target)->check([words](const std::string& text) { return CheckWord(text, words); });
  Finish(option, name, Presence::kOptional);
}

void Command::Number(const std::string& name, int64_t* target, int64_t low, int64_t high,
                     const std::string& help) {
  CLI::Option* option = app_->add_option("--" + name, *target, help)->type_name("N");
  option->default_str(absl::StrCat(*target))->check([low, high](const std::string& text) {
    return CheckNumber(text, low, high);
  });
  Finish(option, name, Presence::kOptional);
}

void Command::Real(const std::string& name, double* target, double low, double high,
                   const std::string& help) {
  CLI::Option* option = app_->add_option("--" + name, *target, help)->type_name("X");
  option->default_str(absl::StrFormat("%g", *target))->check([low, high](const std::string& text) {
    return CheckReal(text, low, high);
  });
  Finish(option, name, Presence::kOptional);
}

void Command::Duration(const std::string& name, absl::Duration* target, const std::string& help) {
  // The check comes first, so what arrives here parses.
  auto* option = app_->add_option_function<std::string>(
      "--" + name, [target](const std::string& text) { absl::ParseDuration(text, target); }, help);
  option->type_name("TIME")->default_str(absl::FormatDuration(*target))->check(CheckDuration);
  Finish(option, name, Presence::kOptional);
}

void Command::Flag(const std::string& name, bool* target, const std::string& help) {
  Finish(app_->add_flag("--" + name, *target, help), name, Presence::kOptional);
}

Command* Command::Add(const std::string& name, const std::string& help, std::function<int()> run) {
  app_->require_subcommand(1);
  CLI::App* app = app_->add_subcommand(name, help);
  app->footer(kFooter);
  commands_.push_back(std::unique_ptr<Command>(new Command(app, chosen_, variables_)));
  if (run) commands_.back()->Runs(std::move(run));
  return commands_.back().get();
}

void Command::Runs(std::function<int()> run) {
  // Parsing only notes the choice: a command must not run inside the parser, which throws.
  app_->parse_complete_callback([this, run = std::move(run)] { *chosen_ = run; });
}

std::set<std::string> Command::Given() const {
  std::set<std::string> given;
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    if (option->count() > 0) given.insert(option->get_single_name());
  }
  return given;
}

CommandLine::CommandLine(const std::string& description)
    : app_(std::make_unique<CLI::App>(description, "isthmus")) {
  app_->footer(kFooter);
  root_.reset(new Command(app_.get(), &chosen_, &variables_));
}

CommandLine::~CommandLine() = default;

Command* CommandLine::Add(const std::string& name, const std::string& help, std::function<int()> run) {
  return root_->Add(name, help, std::move(run));
}

int CommandLine::Run(int argc, const char* const* argv, const char* const* environment, std::ostream& out,
                     std::ostream& error) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const absl::string_view entry(*environment);
    const std::string name(entry.substr(0, entry.find('=')));
    if (!absl::StartsWith(name, "ISTHMUS_") || absl::c_linear_search(kBuildVariables, name)) continue;
    if (!absl::c_linear_search(variables_, name)) {
      error << "isthmus: the environment variable " << name << " belongs to no flag" << std::endl;
      return kExitBadInput;
    }
  }
  const CLI::App* command = app_.get();
  std::string words;
  for (int i = 1; i < argc && argv[i][0] != '-' && command->get_require_subcommand_min() > 0; ++i) {
    const auto found =
        command->get_subcommands([&](const CLI::App* candidate) { return candidate->get_name() == argv[i]; });
    if (found.empty()) {
      error << "isthmus: there is no command \"" << words << argv[i] << "\"; see isthmus " << words
            << "--help" << std::endl;
      return kExitBadInput;
    }
    absl::StrAppend(&words, argv[i], " ");
    command = found[0];
  }
  chosen_ = nullptr;
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app_->exit(help, out, error);
  } catch (const CLI::ParseError& complaint) {
    std::ostringstream said;
    app_->exit(complaint, said, said);
    error << "isthmus: " << said.str();
    return kExitBadInput;
  }
  if (!chosen_) {
    error << "isthmus: no command given; see isthmus --help" << std::endl;
    return kExitBadInput;
  }
  return chosen_();
}

}  // namespace isthmus
