#include "daemon/training/learning_matrix.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status.h"
#include "daemon/training/difference_dump.h"

namespace isthmus {
namespace {

// The cells of the groups asked for, in order.
std::vector<const LearningCell*> ChosenCells(const LearningMatrixOptions& options) {
  std::vector<const LearningCell*> chosen;
  for (const LearningCell& cell : options.cells) {
    const auto& only = options.only;
    if (only.empty() || std::find(only.begin(), only.end(), cell.group) != only.end())
      chosen.push_back(&cell);
  }
  return chosen;
}

absl::Status CheckGroups(const LearningMatrixOptions& options) {
  std::vector<std::string> known;
  for (const LearningGroup& group : options.groups) known.push_back(group.name);
  for (const std::string& name : options.only) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("bench learning: no group \"", name, "\", but ", absl::StrJoin(known, ", ")));
    }
  }
  if (options.seeds < 1) return absl::InvalidArgumentError("bench learning: seeds are needed");
  return absl::OkStatus();
}

// What is left to do, and how long it may take: by the tokens a second of what was run so far.
class Remaining {
 public:
  Remaining(std::vector<LearningCase> cases, const LearningBook& book) : cases_(std::move(cases)) {
    for (const LearningCase& c : cases_) {
      if (book.FinishedLineOf(c).empty()) tokens_ += static_cast<double>(c.tokens);
    }
  }

  void Ran(const LearningCase& c, double seconds) {
    run_tokens_ += static_cast<double>(c.tokens);
    run_seconds_ += seconds;
    tokens_ -= static_cast<double>(c.tokens);
    ++runs_;
  }

  std::string Text(int64_t at) const {
    if (run_tokens_ == 0) return absl::StrCat("run ", at, " of ", cases_.size());
    return absl::StrFormat("run %d of %d, about %.0f min left", at, cases_.size(),
                           std::max(0.0, tokens_) * run_seconds_ / run_tokens_ / 60);
  }

 private:
  std::vector<LearningCase> cases_;
  double tokens_ = 0, run_tokens_ = 0, run_seconds_ = 0;
  int64_t runs_ = 0;
};

// All seeds of all cells, a case once, one seed before the next.
std::vector<LearningCase> CasesOf(const LearningMatrixOptions& options) {
  std::vector<LearningCase> cases;
  std::set<std::string> known;
  for (int64_t seed = 0; seed < options.seeds; ++seed) {
    for (const LearningCell* cell : ChosenCells(options)) {
      LearningCase c = cell->c;
      c.seed = seed;
      if (known.insert(LearningCaseKey(c)).second) cases.push_back(c);
    }
  }
  return cases;
}

// One cell's results over the seeds that have one.
struct CellFigures {
  std::map<int64_t, double> losses;  // by seed
  std::string line;                  // of one of them
  double up = 0, down = 0, run_up = 0, run_down = 0;

  double Mean() const {
    double sum = 0;
    for (const auto& [seed, loss] : losses) sum += loss;
    return sum / static_cast<double>(losses.size());
  }
  double Spread() const {
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (const auto& [seed, loss] : losses) {
      least = std::min(least, loss);
      most = std::max(most, loss);
    }
    return most - least;
  }
  // Mean of the differences on the seeds that both have, and the largest less the smallest of them.
  std::pair<double, double> Against(const CellFigures& other) const {
    double sum = 0, count = 0, least = std::numeric_limits<double>::infinity(), most = -least;
    for (const auto& [seed, loss] : losses) {
      const auto found = other.losses.find(seed);
      if (found == other.losses.end()) continue;
      const double difference = loss - found->second;
      sum += difference;
      least = std::min(least, difference);
      most = std::max(most, difference);
      ++count;
    }
    return {sum / count, most - least};
  }
};

CellFigures FiguresOf(const LearningMatrixOptions& options, const LearningCell& cell,
                      const std::string& setting, const std::vector<std::string>& lines) {
  CellFigures figures;
  LearningCase c = cell.c;
  for (int64_t seed = 0; seed < options.seeds; ++seed) {
    c.seed = seed;
    const std::string key = LearningCaseKey(c);
    for (const std::string& line : lines) {
      if (LearningField(line, "key") != key || LearningField(line, "setting") != setting) continue;
      figures.losses[seed] = LearningNumber(line, "loss");
      figures.line = line;
      figures.up += LearningNumber(line, "up_bytes");
      figures.down += LearningNumber(line, "down_bytes");
      figures.run_up += LearningNumber(line, "run_up_bytes");
      figures.run_down += LearningNumber(line, "run_down_bytes");
      break;
    }
  }
  const double count = std::max(1.0, static_cast<double>(figures.losses.size()));
  for (double* sum : {&figures.up, &figures.down, &figures.run_up, &figures.run_down}) *sum /= count;
  return figures;
}

std::string CellRow(const LearningCell& cell, const CellFigures& figures, const CellFigures& first) {
  if (figures.losses.empty()) return absl::StrFormat("  %-40s %5s\n", cell.name, "-");
  const auto [difference, spread] = figures.Against(first);
  const std::string against = &figures == &first ? absl::StrFormat("%8s %8s", "", "")
                                                 : absl::StrFormat("%+8.4f %8.4f", difference, spread);
  return absl::StrFormat("  %-40s %5d %8.4f %8.4f %s %7s %8.4f %8.4f %8.2f %8.2f\n", cell.name,
                         figures.losses.size(), figures.Mean(), figures.Spread(), against,
                         LearningField(figures.line, "rounds"), figures.up, figures.down, figures.run_up,
                         figures.run_down);
}

std::string JsonNumber(double v) { return std::isfinite(v) ? absl::StrFormat("%.5f", v) : "null"; }

}  // namespace

absl::StatusOr<LearningMatrixReport> RunLearningMatrix(const LearningMatrixOptions& options) {
  ISTHMUS_RETURN_IF_ERROR(CheckGroups(options));
  LearningBookOptions quiet = options;
  quiet.report = nullptr;
  ISTHMUS_ASSIGN_OR_RETURN(const std::unique_ptr<LearningBook> book, LearningBook::Open(quiet));
  const auto say = [&options](const std::string& text) {
    if (options.report) options.report(text);
  };
  const std::vector<LearningCase> cases = CasesOf(options);
  Remaining remaining(cases, *book);
  for (size_t i = 0; i < cases.size(); ++i) {
    if (!book->FinishedLineOf(cases[i]).empty()) continue;
    const absl::Time start = options.clock->SteadyNow();
    const absl::StatusOr<std::string> line = book->LineOf(cases[i]);
    if (line.status().code() == absl::StatusCode::kInvalidArgument) {
      say(absl::StrCat("skipped: ", line.status().message()));
      continue;
    }
    ISTHMUS_RETURN_IF_ERROR(line.status());
    const double seconds = absl::ToDoubleSeconds(options.clock->SteadyNow() - start);
    remaining.Ran(cases[i], seconds);
    if (line->empty()) continue;
    say(absl::StrFormat("%s: %s: held-out loss %s after %.0f s", remaining.Text(i + 1),
                        LearningCaseKey(cases[i]), LearningField(*line, "loss"), seconds));
  }
  const std::vector<std::string> lines = ReadLearningLines(options.results_path);
  return LearningMatrixReport{LearningMatrixTable(options, book->setting(), lines),
                              LearningMatrixJson(options, book->setting(), lines)};
}

absl::Status DumpDifferencesOf(const LearningBookOptions& options, const LearningCase& c,
                               const std::string& folder) {
  if (c.form == LearningForm::kSynchronous)
    return absl::InvalidArgumentError("bench learning: synchronous training has no differences");
  ISTHMUS_ASSIGN_OR_RETURN(const std::unique_ptr<LearningBook> book, LearningBook::Open(options));
  LearningSetup setup = book->setup();
  ISTHMUS_ASSIGN_OR_RETURN(DifferenceDump dump, DifferenceDump::Create(folder, *setup.table));
  const int64_t length = setup.held_out.at(0).length;
  const int64_t rounds = c.tokens / (c.sites * c.inner_steps * c.sequences * length);
  const std::set<int64_t> taken = {rounds / 10,    rounds / 10 + 1, rounds / 2,
                                   rounds / 2 + 1, rounds - 3,      rounds - 2};
  setup.on_difference = [&](int64_t round, int64_t site, absl::Span<const float> difference) {
    return taken.count(round) == 0 ? absl::OkStatus() : dump.Add(round, site, difference);
  };
  ISTHMUS_RETURN_IF_ERROR(RunLearningCase(setup, c).status());
  return dump.Finish();
}

absl::Status DumpLearningDifferences(const LearningMatrixOptions& options, const std::string& folder) {
  ISTHMUS_RETURN_IF_ERROR(CheckGroups(options));
  const std::vector<const LearningCell*> cells = ChosenCells(options);
  if (cells.empty()) return absl::InvalidArgumentError("bench learning: no cell to dump");
  return DumpDifferencesOf(options, cells[0]->c, folder);
}

absl::StatusOr<std::string> ListLearningCells(const LearningMatrixOptions& options) {
  if (absl::Status s = CheckGroups(options); !s.ok()) return s;
  std::string text;
  std::string group;
  for (const LearningCell* cell : ChosenCells(options)) {
    if (cell->group != group) {
      group = cell->group;
      for (const LearningGroup& g : options.groups) {
        if (g.name == group) absl::StrAppend(&text, g.name, ": ", g.question, "\n");
      }
    }
    absl::StrAppend(&text, absl::StrFormat("  %-40s %s\n", cell->name, LearningCaseKey(cell->c)));
  }
  return text;
}

std::string LearningMatrixTable(const LearningMatrixOptions& options, const std::string& setting,
                                const std::vector<std::string>& lines) {
  std::string text = absl::StrCat(setting, "\n");
  const std::vector<const LearningCell*> cells = ChosenCells(options);
  for (const LearningGroup& group : options.groups) {
    CellFigures first;
    bool is_first = true;
    for (const LearningCell* cell : cells) {
      if (cell->group != group.name) continue;
      const CellFigures figures = FiguresOf(options, *cell, setting, lines);
      if (is_first) {
        absl::StrAppend(&text, "\n", group.name, ": ", group.question, "\n",
                        absl::StrFormat("  %-40s %5s %8s %8s %8s %8s %7s %8s %8s %8s %8s\n", "", "seeds",
                                        "loss", "spread", "to first", "spread", "rounds", "B/p up",
                                        "B/p down", "run up", "run down"));
        first = figures;
      }
      absl::StrAppend(&text, CellRow(*cell, is_first ? first : figures, first));
      is_first = false;
    }
  }
  return text;
}

std::string LearningMatrixJson(const LearningMatrixOptions& options, const std::string& setting,
                               const std::vector<std::string>& lines) {
  std::string cells;
  for (const LearningCell* cell : ChosenCells(options)) {
    const CellFigures figures = FiguresOf(options, *cell, setting, lines);
    if (figures.losses.empty()) continue;
    absl::StrAppend(
        &cells, cells.empty() ? "\n" : ",\n", "  {\"group\": \"", cell->group, "\", \"name\": \"", cell->name,
        "\", \"seeds\": ", figures.losses.size(), ", \"loss\": ", JsonNumber(figures.Mean()),
        ", \"spread\": ", JsonNumber(figures.Spread()),
        ", \"rounds\": ", LearningField(figures.line, "rounds"), ", \"up_bytes\": ", JsonNumber(figures.up),
        ", \"down_bytes\": ", JsonNumber(figures.down), ", \"run_up_bytes\": ", JsonNumber(figures.run_up),
        ", \"run_down_bytes\": ", JsonNumber(figures.run_down), "}");
  }
  return absl::StrCat("{\"setting\": \"", setting, "\", \"cells\": [", cells, "]}\n");
}

}  // namespace isthmus
