#include "daemon/training/learning_book.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status.h"

namespace isthmus {
namespace {

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
      ", \"run_up_bytes\": ", NumberOrNull(r.all_up_bytes()),
      ", \"run_down_bytes\": ", NumberOrNull(r.all_down_bytes()),
      ", \"seconds\": ", absl::StrFormat("%.1f", seconds), ", \"curve\": [", curve, "]}");
}

// Whether a line may be ours: whole, or cut off by a kill.
bool MayBeResultLine(absl::string_view line) {
  constexpr absl::string_view kBegin = "{\"key\": \"";
  return absl::StartsWith(line, kBegin) || absl::StartsWith(kBegin, line);
}

// Refuses what is another file by mistake before anything is added to it.
absl::Status CheckResultsFile(const std::string& path) {
  std::ifstream in(path);
  int64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (MayBeResultLine(line)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("results file ", path, ", line ", number, ": is no result of bench learning"));
  }
  return absl::OkStatus();
}

// A byte far behind the end of any results file stands for the case: locking it claims the case.
off_t ClaimOffset(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3u;
  return static_cast<off_t>((uint64_t{1} << 40) + (hash & ((uint64_t{1} << 40) - 1)));
}

}  // namespace

std::vector<std::string> ReadLearningLines(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.front() == '{' && line.back() == '}') lines.push_back(line);
  }
  return lines;
}

std::string LearningField(const std::string& line, const std::string& name) {
  const std::string mark = absl::StrCat("\"", name, "\": ");
  size_t from = line.find(mark);
  if (from == std::string::npos) return "";
  from += mark.size();
  if (line[from] == '"') return line.substr(from + 1, line.find('"', from + 1) - from - 1);
  return line.substr(from, line.find_first_of(",}", from) - from);
}

double LearningNumber(const std::string& line, const std::string& name) {
  double value = 0;
  if (!absl::SimpleAtod(LearningField(line, name), &value)) return std::numeric_limits<double>::infinity();
  return value;
}

absl::StatusOr<std::unique_ptr<LearningBook>> LearningBook::Open(const LearningBookOptions& options) {
  if (options.results_path.empty() || !options.make_trainer || options.clock == nullptr) {
    return absl::InvalidArgumentError("bench learning: results file, trainer and clock are needed");
  }
  std::unique_ptr<LearningBook> book(new LearningBook(options));
  ISTHMUS_RETURN_IF_ERROR(book->SetUp());
  return book;
}

absl::Status LearningBook::SetUp() {
  ISTHMUS_RETURN_IF_ERROR(CheckResultsFile(options_.results_path));
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

void LearningBook::KeepEverySecond() {
  for (Batch& batch : setup_.held_out) {
    Batch kept{0, batch.length, {}};
    for (int64_t s = 0; s < batch.sequences; s += 2, ++kept.sequences) {
      const auto row = batch.tokens.begin() + s * (batch.length + 1);
      kept.tokens.insert(kept.tokens.end(), row, row + batch.length + 1);
    }
    batch = std::move(kept);
  }
}

std::string LearningBook::FinishedLineOf(const LearningCase& c) const {
  for (const std::string& line : ReadLearningLines(options_.results_path)) {
    if (LearningField(line, "key") == LearningCaseKey(c) && LearningField(line, "setting") == setting_)
      return line;
  }
  return "";
}

absl::StatusOr<std::string> LearningBook::LineOf(const LearningCase& c) {
  std::string line = FinishedLineOf(c);
  if (!line.empty()) return line;
  const int file = open(options_.results_path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0)
    return absl::FailedPreconditionError(
        absl::StrCat("results file ", options_.results_path, ": cannot be opened: ", std::strerror(errno)));
  const absl::Cleanup close_file = [file] { close(file); };
  struct flock claim = {};
  claim.l_type = F_WRLCK;
  claim.l_whence = SEEK_SET;
  claim.l_start = ClaimOffset(absl::StrCat(LearningCaseKey(c), setting_));
  claim.l_len = 1;
  if (fcntl(file, F_OFD_SETLK, &claim) != 0) return std::string();
  // Another process may have finished it between the look and the claim.
  line = FinishedLineOf(c);
  return line.empty() ? RunAndAppend(c, file) : line;
}

absl::StatusOr<std::string> LearningBook::RunAndAppend(const LearningCase& c, int file) {
  const absl::Time start = options_.clock->SteadyNow();
  absl::StatusOr<LearningResult> result = RunLearningCase(setup_, c);
  if (!result.ok() && result.status().code() != absl::StatusCode::kDataLoss) return result.status();
  LearningResult diverged;
  diverged.loss = std::numeric_limits<double>::infinity();
  const LearningResult& r = result.ok() ? *result : diverged;
  const double seconds = absl::ToDoubleSeconds(options_.clock->SteadyNow() - start);
  const std::string line = ResultLine(setting_, c, r, seconds);
  // One write, so that lines of several processes do not mix.
  const std::string whole = absl::StrCat(line, "\n");
  if (write(file, whole.data(), whole.size()) != static_cast<ssize_t>(whole.size()))
    return absl::InternalError(absl::StrCat("results file ", options_.results_path, ": cannot be written"));
  if (options_.report) {
    options_.report(
        absl::StrFormat("%s: held-out loss %.4f after %.0f s", LearningCaseKey(c), r.loss, seconds));
  }
  return line;
}

}  // namespace isthmus
