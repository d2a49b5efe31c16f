#include "daemon/training/learning_bench.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status.h"
#include "daemon/training/token_file.h"

namespace isthmus {
namespace {

constexpr double kDiverged = std::numeric_limits<double>::infinity();

// The value of "name": in one of our own lines, without quotes; empty when it is not there.
std::string Field(const std::string& line, const std::string& name) {
  const std::string mark = absl::StrCat("\"", name, "\": ");
  size_t from = line.find(mark);
  if (from == std::string::npos) return "";
  from += mark.size();
  if (line[from] == '"') return line.substr(from + 1, line.find('"', from + 1) - from - 1);
  return line.substr(from, line.find_first_of(",}", from) - from);
}

double Number(const std::string& line, const std::string& name) {
  double value = kDiverged;
  if (!absl::SimpleAtod(Field(line, name), &value)) return kDiverged;
  return value;
}

std::vector<std::string> ReadLines(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.front() == '{' && line.back() == '}') lines.push_back(line);
  }
  return lines;
}

std::string ShapeText(const ModelShape& s, bool is_study_split) {
  return absl::StrCat("vocabulary ", s.vocabulary, " width ", s.width, " layers ", s.layers, " heads ",
                      s.heads, "/", s.kv_heads, " feed-forward ", s.feed_forward, " context ", s.context,
                      s.is_head_tied ? "" : " untied", is_study_split ? ", study's split" : "");
}

std::string NumberOrNull(double v) { return std::isfinite(v) ? absl::StrFormat("%.5f", v) : "null"; }

std::string ResultLine(const std::string& setting, const LearningCase& c, const LearningResult& r,
                       double seconds) {
  std::string curve;
  for (double v : r.curve) absl::StrAppend(&curve, curve.empty() ? "" : ", ", NumberOrNull(v));
  const LearningCase nominal;
  LearningCase group = c;
  group.form = nominal.form;
  group.peak_rate = nominal.peak_rate;
  group.seed = nominal.seed;
  return absl::StrCat(
      "{\"key\": \"", LearningCaseKey(c), "\", \"setting\": \"", setting, "\", \"group\": \"",
      LearningCaseKey(group), "\", \"form\": \"", LearningFormName(c.form), "\", \"rate\": ", c.peak_rate,
      ", \"seed\": ", c.seed, ", \"loss\": ", NumberOrNull(r.loss), ", \"rounds\": ", r.rounds,
      ", \"steps\": ", r.steps, ", \"tokens\": ", r.tokens, ", \"parameters\": ", r.parameters,
      ", \"k\": ", r.kept_per_block, ", \"alpha\": ", r.outer_rate,
      ", \"up_bytes\": ", NumberOrNull(r.up_bytes), ", \"down_bytes\": ", NumberOrNull(r.down_bytes),
      ", \"last_up_bytes\": ", NumberOrNull(r.last_up_bytes),
      ", \"last_down_bytes\": ", NumberOrNull(r.last_down_bytes),
      ", \"seconds\": ", absl::StrFormat("%.1f", seconds), ", \"curve\": [", curve, "]}");
}

// The comparison at work: the open file, the setup, what is known.
class Comparison {
 public:
  explicit Comparison(const LearningBenchOptions& options) : options_(options) {}

  absl::Status SetUp() {
    ISTHMUS_ASSIGN_OR_RETURN(TensorTable table, TensorTable::ForModel(options_.shape));
    table_ = std::make_unique<TensorTable>(std::move(table));
    TokenFileOptions file;
    file.vocabulary = options_.shape.vocabulary;
    file.context = options_.shape.context;
    if (options_.is_study_split) file.held_out_fraction = 0.05;
    ISTHMUS_ASSIGN_OR_RETURN(data_, TokenFile::Open(options_.data_path, file));
    ops_ = MakeCpuDeviceOps();
    setup_.table = table_.get();
    setup_.data = data_.get();
    setup_.ops = ops_.get();
    setup_.make_trainer = options_.make_trainer;
    setup_.report = options_.report;
    setup_.held_out = data_->HeldOutBatches(true);
    if (options_.is_study_split) KeepEverySecond();
    setup_.held_out_subset = data_->HeldOutBatches(false);
    setting_ = absl::StrCat(ShapeText(options_.shape, options_.is_study_split), ", data ",
                            data_->digest().ToHex().substr(0, 8));
    return absl::OkStatus();
  }

  absl::Status RunForm(LearningForm form) {
    double best_rate = 0, best_loss = kDiverged;
    for (double rate : options_.rates) {
      ISTHMUS_ASSIGN_OR_RETURN(const double loss, LossOf(form, rate, 0));
      if (best_rate == 0 || loss < best_loss) {
        best_rate = rate;
        best_loss = loss;
      }
    }
    for (int64_t seed = 1; seed < options_.seeds; ++seed) {
      ISTHMUS_RETURN_IF_ERROR(LossOf(form, best_rate, seed).status());
    }
    return absl::OkStatus();
  }

 private:
  void KeepEverySecond() {
    for (Batch& batch : setup_.held_out) {
      Batch kept{0, batch.length, {}};
      for (int64_t s = 0; s < batch.sequences; s += 2, ++kept.sequences) {
        const auto row = batch.tokens.begin() + s * (batch.length + 1);
        kept.tokens.insert(kept.tokens.end(), row, row + batch.length + 1);
      }
      batch = std::move(kept);
    }
  }

  // From the file, or by running it; infinite when it diverged.
  absl::StatusOr<double> LossOf(LearningForm form, double rate, uint64_t seed) {
    LearningCase c = options_.base;
    c.form = form;
    c.peak_rate = rate;
    c.seed = seed;
    for (const std::string& line : ReadLines(options_.results_path)) {
      if (Field(line, "key") == LearningCaseKey(c) && Field(line, "setting") == setting_)
        return Number(line, "loss");
    }
    const absl::Time start = options_.clock->SteadyNow();
    absl::StatusOr<LearningResult> result = RunLearningCase(setup_, c);
    if (!result.ok() && result.status().code() != absl::StatusCode::kDataLoss) return result.status();
    LearningResult diverged;
    diverged.loss = kDiverged;
    const LearningResult& r = result.ok() ? *result : diverged;
    const double seconds = absl::ToDoubleSeconds(options_.clock->SteadyNow() - start);
    std::ofstream out(options_.results_path, std::ios::app);
    out << ResultLine(setting_, c, r, seconds) << "\n";
    out.flush();
    if (!out)
      return absl::InternalError(absl::StrCat("results file ", options_.results_path, ": cannot be written"));
    if (options_.report) {
      options_.report(
          absl::StrFormat("%s: held-out loss %.4f after %.0f s", LearningCaseKey(c), r.loss, seconds));
    }
    return r.loss;
  }

  const LearningBenchOptions& options_;
  std::unique_ptr<TensorTable> table_;
  std::unique_ptr<TokenFile> data_;
  std::unique_ptr<DeviceOps> ops_;
  LearningSetup setup_;
  std::string setting_;
};

// One form's lines at its best rate.
struct FormSummary {
  std::map<double, std::vector<std::string>> by_rate;

  // The rate with the lowest loss on the first seed.
  double BestRate() const {
    double best = 0, best_loss = kDiverged;
    for (const auto& [rate, lines] : by_rate) {
      for (const std::string& line : lines) {
        if (Field(line, "seed") != "0") continue;
        if (best == 0 || Number(line, "loss") < best_loss) {
          best = rate;
          best_loss = Number(line, "loss");
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
    const double loss = Number(line, "loss");
    sum += loss;
    least = std::min(least, loss);
    most = std::max(most, loss);
  }
  const std::string& line = found->second.front();
  const double count = static_cast<double>(found->second.size());
  const bool is_computed = form == LearningFormName(LearningForm::kSynchronous);
  return absl::StrFormat("%-15s %8g %6d %8.4f %8.4f %7s %6s %6s %9.4f %9.4f%s\n", form, rate,
                         found->second.size(), sum / count, most - least, Field(line, "rounds"),
                         Field(line, "k"), Field(line, "alpha"), Number(line, "up_bytes"),
                         Number(line, "down_bytes"), is_computed ? "  per step, computed" : "");
}

}  // namespace

absl::StatusOr<std::string> RunLearningBench(const LearningBenchOptions& options) {
  if (options.rates.empty() || options.forms.empty() || options.seeds < 1 || options.results_path.empty() ||
      !options.make_trainer || options.clock == nullptr) {
    return absl::InvalidArgumentError(
        "bench learning: rates, forms, seeds, results file, trainer and clock are needed");
  }
  Comparison comparison(options);
  ISTHMUS_RETURN_IF_ERROR(comparison.SetUp());
  for (LearningForm form : options.forms) ISTHMUS_RETURN_IF_ERROR(comparison.RunForm(form));
  return LearningTable(ReadLines(options.results_path));
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
  options.base.is_last_round_dense = false;
  return options;
}

std::string LearningTable(const std::vector<std::string>& lines) {
  // Settings in order of appearance, forms in order of appearance.
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, FormSummary>>>> tables;
  for (const std::string& line : lines) {
    const std::string title = absl::StrCat(Field(line, "setting"), "; ", Field(line, "group"));
    auto table = std::find_if(tables.begin(), tables.end(), [&](const auto& t) { return t.first == title; });
    if (table == tables.end()) table = tables.insert(tables.end(), {title, {}});
    const std::string form = Field(line, "form");
    auto& forms = table->second;
    auto row = std::find_if(forms.begin(), forms.end(), [&](const auto& f) { return f.first == form; });
    if (row == forms.end()) row = forms.insert(forms.end(), {form, {}});
    row->second.by_rate[Number(line, "rate")].push_back(line);
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
