#include "daemon/training/learning_bench.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status.h"

namespace isthmus {
namespace {

constexpr double kDiverged = std::numeric_limits<double>::infinity();

// Runs the form at each rate on the first seed, then the other seeds at the best one.
absl::Status RunForm(const LearningBenchOptions& options, LearningForm form, LearningBook* book) {
  LearningCase c = options.base;
  c.form = form;
  double best_rate = 0, best_loss = kDiverged;
  for (double rate : options.rates) {
    c.peak_rate = rate;
    c.seed = 0;
    ISTHMUS_ASSIGN_OR_RETURN(const std::string line, book->LineOf(c));
    const double loss = line.empty() ? kDiverged : LearningNumber(line, "loss");
    if (best_rate == 0 || loss < best_loss) {
      best_rate = rate;
      best_loss = loss;
    }
  }
  c.peak_rate = best_rate;
  for (int64_t seed = 1; seed < options.seeds; ++seed) {
    c.seed = seed;
    ISTHMUS_RETURN_IF_ERROR(book->LineOf(c).status());
  }
  return absl::OkStatus();
}

// One form's lines at its best rate.
struct FormSummary {
  std::map<double, std::vector<std::string>> by_rate;

  // The rate with the lowest loss on the first seed.
  double BestRate() const {
    double best = 0, best_loss = kDiverged;
    for (const auto& [rate, lines] : by_rate) {
      for (const std::string& line : lines) {
        if (LearningField(line, "seed") != "0") continue;
        if (best == 0 || LearningNumber(line, "loss") < best_loss) {
          best = rate;
          best_loss = LearningNumber(line, "loss");
        }
      }
    }
    return best;
  }
};

std::string FormRow(const std::string& form, const FormSummary& summary) {
  const double rate = summary.BestRate();
  const auto found = summary.by_rate.find(rate);
  if (found == summary.by_rate.end()) return "";
  double sum = 0, least = kDiverged, most = -kDiverged;
  for (const std::string& line : found->second) {
    const double loss = LearningNumber(line, "loss");
    sum += loss;
    least = std::min(least, loss);
    most = std::max(most, loss);
  }
  const std::string& line = found->second.front();
  const double count = static_cast<double>(found->second.size());
  const bool is_computed = form == LearningFormName(LearningForm::kSynchronous);
  return absl::StrFormat("%-15s %8g %6d %8.4f %8.4f %7s %6s %6s %9.4f %9.4f%s\n", form, rate,
                         found->second.size(), sum / count, most - least, LearningField(line, "rounds"),
                         LearningField(line, "k"), LearningField(line, "alpha"),
                         LearningNumber(line, "up_bytes"), LearningNumber(line, "down_bytes"),
                         is_computed ? "  per step, computed" : "");
}

}  // namespace

absl::StatusOr<std::string> RunLearningBench(const LearningBenchOptions& options) {
  if (options.rates.empty() || options.forms.empty() || options.seeds < 1)
    return absl::InvalidArgumentError("bench learning: rates, forms and seeds are needed");
  ISTHMUS_ASSIGN_OR_RETURN(const std::unique_ptr<LearningBook> book, LearningBook::Open(options));
  for (LearningForm form : options.forms) ISTHMUS_RETURN_IF_ERROR(RunForm(options, form, book.get()));
  return LearningTable(ReadLearningLines(options.results_path));
}

LearningBenchOptions AgreementWithStudy(LearningBenchOptions options) {
  options.is_study_split = true;
  options.forms = {LearningForm::kSynchronous, LearningForm::kDense, LearningForm::kSparse};
  options.rates = {3e-3};
  options.seeds = 1;
  options.base = LearningCase();
  options.base.tokens = 1843200;
  options.base.sites = 3;
  options.base.inner_steps = 15;
  options.base.sequences = 8;
  options.base.kept_per_block = 512;
  options.base.outer_rate = 1;
  options.base.last_codec.clear();
  return options;
}

std::string LearningTable(const std::vector<std::string>& lines) {
  // Settings in order of appearance, forms in order of appearance.
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, FormSummary>>>> tables;
  for (const std::string& line : lines) {
    const std::string title =
        absl::StrCat(LearningField(line, "setting"), "; ", LearningField(line, "group"));
    auto table = std::find_if(tables.begin(), tables.end(), [&](const auto& t) { return t.first == title; });
    if (table == tables.end()) table = tables.insert(tables.end(), {title, {}});
    const std::string form = LearningField(line, "form");
    auto& forms = table->second;
    auto row = std::find_if(forms.begin(), forms.end(), [&](const auto& f) { return f.first == form; });
    if (row == forms.end()) row = forms.insert(forms.end(), {form, {}});
    row->second.by_rate[LearningNumber(line, "rate")].push_back(line);
  }
  std::string text;
  for (const auto& [title, forms] : tables) {
    absl::StrAppend(&text, title, "\n");
    absl::StrAppend(
        &text, absl::StrFormat("%-15s %8s %6s %8s %8s %7s %6s %6s %9s %9s\n", "form", "rate", "seeds", "loss",
                               "spread", "rounds", "k", "alpha", "B/p up", "B/p down"));
    for (const auto& [form, summary] : forms) absl::StrAppend(&text, FormRow(form, summary));
  }
  return text;
}

}  // namespace isthmus
