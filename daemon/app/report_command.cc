#include "daemon/app/report_command.h"

#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/app/loss_curve_svg.h"
#include "daemon/app/output_path.h"
#include "daemon/app/round_line.h"
#include "daemon/app/status_follower.h"
#include "daemon/app/status_json.h"
#include "daemon/app/summary_table.h"
#include "daemon/app/traffic_table.h"
#include "daemon/base/status.h"
#include "daemon/exchange/url.h"

namespace isthmus {
namespace {

absl::StatusOr<RunStatus> ReadStatus(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    return absl::InvalidArgumentError(absl::StrCat(path, ": cannot be read"));
  absl::StatusOr<RunStatus> status = StatusFromJson(text.str());
  if (!status.ok()) return Annotate(status.status(), path);
  return status;
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text << std::flush;
  if (!file) return absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
  return absl::OkStatus();
}

// Puts together what a stream says: only its first status has all commits, later ones the newest. Prints each
// round once, in order, when nothing more is to be learned of it: its held-out loss comes some time after the
// commit.
class RoundCollector {
 public:
  explicit RoundCollector(std::ostream& out) : out_(out) {}

  void Add(const RunStatus& status) {
    last_ = status;
    for (const CommitSummary& commit : status.commits()) commits_[commit.round()] = commit;
    for (const auto& [round, commit] : commits_) {
      const bool is_newest = round == commits_.rbegin()->first;
      if (round > printed_ && (!is_newest || commit.held_out_tokens() > 0)) Print(commit);
    }
  }

  // Prints what is left; the newest status with all commits that were ever in one.
  RunStatus Finish() {
    for (const auto& [round, commit] : commits_) {
      if (round > printed_) Print(commit);
    }
    last_.clear_commits();
    for (const auto& [round, commit] : commits_) *last_.add_commits() = commit;
    return last_;
  }

 private:
  void Print(const CommitSummary& commit) {
    if (printed_ == 0) out_ << RoundLineHeadings() << "\n";
    out_ << RoundLine(commit) << std::endl;
    printed_ = commit.round();
  }

  std::ostream& out_;
  RunStatus last_;
  std::map<int64_t, CommitSummary> commits_;  // by round
  int64_t printed_ = 0;
};

absl::Status CollectRounds(const ReportOptions& options, const StatusWatch& watch, const Clock& clock,
                           RoundCollector* rounds, std::ostream& error) {
  ISTHMUS_ASSIGN_OR_RETURN(const RunUrl url, ParseRunUrl(options.url));
  StatusRequest request;
  request.set_run_name(url.run);
  request.set_all_commits(true);
  const auto see = [&](const RunStatus& status) {
    rounds->Add(status);
    return options.is_follow && status.phase() != "FINISHED";
  };
  return FollowStatus(watch, clock, request, options.give_up_after, see,
                      [&](absl::string_view text) { error << "isthmus: " << text << std::endl; });
}

}  // namespace

void AddReportCommand(CommandLine* line, std::function<int(const ReportOptions&)> run) {
  auto options = std::make_shared<ReportOptions>();
  Command* command = line->Add("report", "Prints a run's rounds and what they came to.",
                               [options, run = std::move(run)] { return run(*options); });
  command->Positional("url", &options->url, "isthmus://HOST:PORT/RUN, unless --json names a file",
                      Presence::kOptional);
  command->Text("json", &options->json_in, "take the status from this file instead of a coordinator");
  command->Flag("follow", &options->is_follow,
                "print rounds as they are committed, until the run is finished");
  command->Text("svg", &options->svg_out, "write the loss curve to this file");
  command->Text("save-json", &options->json_out, "write the status to this file");
  command->Number("min-rounds", &options->min_rounds, 0, INT64_MAX,
                  "fail unless this many rounds were committed");
  command->Real("max-held-out-loss", &options->max_held_out_loss, 0, std::numeric_limits<double>::infinity(),
                "fail unless the held-out loss ended below this");
  command->Duration("give-up-after", &options->give_up_after,
                    "how long to go on trying to reach the coordinator");
  command->Flag("insecure", &options->is_insecure,
                "speak plain text to another machine, on a network that can be trusted");
}

absl::Status Report(const ReportOptions& options, const StatusWatch& watch, const Clock& clock,
                    std::ostream& out, std::ostream& error) {
  if (options.url.empty() == options.json_in.empty()) {
    return absl::InvalidArgumentError("report needs either the run's URL or --json FILE");
  }
  for (const std::string& path : {options.svg_out, options.json_out})
    ISTHMUS_RETURN_IF_ERROR(CheckOutputPath(path));
  RoundCollector rounds(out);
  if (options.url.empty()) {
    ISTHMUS_ASSIGN_OR_RETURN(const RunStatus read, ReadStatus(options.json_in));
    rounds.Add(read);
  } else {
    ISTHMUS_RETURN_IF_ERROR(CollectRounds(options, watch, clock, &rounds, error));
  }
  const RunStatus status = rounds.Finish();
  out << "\n"
      << SummaryTable(status) << "\n"
      << SiteTable(status) << "\n"
      << TrafficTable(status) << std::flush;
  if (!options.svg_out.empty()) ISTHMUS_RETURN_IF_ERROR(WriteFile(options.svg_out, LossCurveSvg(status)));
  if (!options.json_out.empty()) {
    ISTHMUS_ASSIGN_OR_RETURN(const std::string json, StatusToJson(status, true));
    ISTHMUS_RETURN_IF_ERROR(WriteFile(options.json_out, json));
  }
  if (!options.has_criteria()) return absl::OkStatus();
  const std::vector<std::string> unmet =
      UnmetCriteria(status, {options.min_rounds, options.max_held_out_loss});
  if (!unmet.empty())
    return absl::AbortedError(absl::StrCat("not as it should be: ", absl::StrJoin(unmet, "; ")));
  return absl::OkStatus();
}

}  // namespace isthmus
