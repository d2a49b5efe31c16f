#include "daemon/app/summary_table.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/app/human_units.h"
#include "daemon/app/text_table.h"

namespace isthmus {
namespace {

// Bytes of some commits against what they are divided by.
struct ByteTotals {
  double up = 0, down = 0;
  double contributions = 0, expected = 0, steps = 0;

  void Add(const CommitSummary& commit) {
    up += static_cast<double>(commit.bytes_up());
    down += static_cast<double>(commit.bytes_down());
    contributions += static_cast<double>(commit.included());
    expected += static_cast<double>(commit.expected());
    steps += static_cast<double>(commit.steps());
  }
};

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

void SummarizeBytes(const RunStatus& status, RunSummary* summary) {
  ByteTotals all, usual, last;
  for (const CommitSummary& commit : status.commits()) {
    all.Add(commit);
    (commit.is_last() ? last : usual).Add(commit);
  }
  const double parameters = static_cast<double>(status.parameters());
  summary->socket_up = Ratio(static_cast<double>(status.bytes_in()), parameters * all.contributions);
  summary->socket_down = Ratio(static_cast<double>(status.bytes_out()), parameters * all.expected);
  summary->frame_up = Ratio(usual.up, parameters * usual.contributions);
  summary->update_down = Ratio(usual.down, parameters * usual.expected);
  summary->last_up = Ratio(last.up, parameters * last.contributions);
  summary->last_down = Ratio(last.down, parameters * last.expected);
  summary->steps_per_contribution = Ratio(all.steps, all.contributions);
  summary->dense_ratio_up = Ratio(4, summary->socket_up);
  summary->dense_ratio_down = Ratio(4, summary->socket_down);
  summary->per_step_ratio_up = summary->dense_ratio_up * summary->steps_per_contribution;
  summary->per_step_ratio_down = summary->dense_ratio_down * summary->steps_per_contribution;
}

// Held-out loss of the anchor: of the whole part where it was measured, else of the newest subset.
double HeldOutEnd(const RunStatus& status) {
  if (status.held_out_loss_end() != 0) return status.held_out_loss_end();
  for (int i = status.commits_size() - 1; i >= 0; --i) {
    if (status.commits(i).held_out_tokens() > 0) return status.commits(i).held_out_loss();
  }
  return 0;
}

std::string PerParameter(double bytes) { return bytes > 0 ? absl::StrFormat("%.4f", bytes) : "-"; }

std::string Times(double ratio) {
  return ratio > 0 ? absl::StrFormat("%.*f x", ratio < 100 ? 1 : 0, ratio) : "-";
}

}  // namespace

RunSummary SummarizeRun(const RunStatus& status) {
  RunSummary summary;
  summary.rounds_committed = status.rounds_committed();
  summary.rounds_aborted = status.rounds_aborted();
  // Rounds are numbered from 1 without gaps; the open one is not counted.
  int64_t newest = 0;
  for (const CommitSummary& commit : status.commits()) newest = std::max<int64_t>(newest, commit.round());
  summary.rounds_lost = std::max<int64_t>(0, newest - status.rounds_committed() - status.rounds_aborted());
  summary.tokens = status.tokens();
  summary.held_out_start = status.held_out_loss_start();
  summary.held_out_end = HeldOutEnd(status);
  SummarizeBytes(status, &summary);
  summary.digests_compared = status.digests_compared();
  summary.digests_deviating = status.digests_deviating();
  summary.forfeited_steps = status.forfeited_steps();
  double contributed = 0;
  for (const SiteStatus& site : status.sites()) contributed += static_cast<double>(site.contributed_steps());
  const double forfeited = static_cast<double>(status.forfeited_steps());
  summary.forfeited_fraction = Ratio(forfeited, forfeited + contributed);
  for (const CommitSummary& commit : status.commits()) {
    summary.compute_seconds += commit.compute_seconds();
    summary.wait_seconds += commit.wait_seconds();
  }
  return summary;
}

std::string SummaryTable(const RunStatus& status) {
  const RunSummary s = SummarizeRun(status);
  TextTable table(
      {"<run", absl::StrCat("<", status.run_name(), ", ",
                            HumanCount(static_cast<double>(status.parameters())), " parameters")});
  table.AddRow({"codec", status.codec()});
  if (!status.error_feedback().empty()) table.AddRow({"error feedback", status.error_feedback()});
  table.AddRow({"rounds committed / aborted / lost",
                absl::StrCat(s.rounds_committed, " / ", s.rounds_aborted, " / ", s.rounds_lost)});
  table.AddRow({"tokens", HumanCount(static_cast<double>(s.tokens))});
  table.AddRow({"held-out loss of the anchor, start", HumanLoss(s.held_out_start)});
  table.AddRow({"held-out loss of the anchor, end", HumanLoss(s.held_out_end)});
  table.AddRow({"bytes per parameter, round and site on the sockets, up / down",
                absl::StrCat(PerParameter(s.socket_up), " / ", PerParameter(s.socket_down))});
  table.AddRow({"  of these frames / updates alone, without the last round",
                absl::StrCat(PerParameter(s.frame_up), " / ", PerParameter(s.update_down))});
  table.AddRow({"  frames / updates of the last round (dense)",
                absl::StrCat(PerParameter(s.last_up), " / ", PerParameter(s.last_down))});
  table.AddRow({"less than dense fp32 once a round, up / down",
                absl::StrCat(Times(s.dense_ratio_up), " / ", Times(s.dense_ratio_down))});
  table.AddRow({absl::StrFormat("less than data parallel at each of %.1f steps, up / down [computed]",
                                s.steps_per_contribution),
                absl::StrCat(Times(s.per_step_ratio_up), " / ", Times(s.per_step_ratio_down))});
  table.AddRow(
      {"digests compared / deviating", absl::StrCat(s.digests_compared, " / ", s.digests_deviating)});
  table.AddRow(
      {"steps forfeited", absl::StrCat(s.forfeited_steps, " (", HumanShare(s.forfeited_fraction, 1), ")")});
  table.AddRow({"seconds computing / waiting, all sites",
                absl::StrFormat("%.1f / %.1f (%s waiting)", s.compute_seconds, s.wait_seconds,
                                HumanShare(s.wait_seconds, s.compute_seconds + s.wait_seconds))});
  return table.ToString();
}

std::string SiteTable(const RunStatus& status) {
  double fastest = 0;
  for (const SiteStatus& site : status.sites()) {
    fastest = std::max(fastest, site.progress().tokens_per_second());
  }
  TextTable table({"<site", "lives", "rounds", "missed", "tokens/s", "of the fastest", "steps in commits",
                   "steps forfeited"});
  for (const SiteStatus& site : status.sites()) {
    const double speed = site.progress().tokens_per_second();
    table.AddRow({site.site(), absl::StrCat(site.incarnation()), absl::StrCat(site.rounds_included()),
                  absl::StrCat(site.rounds_missed()), speed > 0 ? HumanCount(speed) : "-",
                  speed > 0 ? absl::StrFormat("%.2f", Ratio(speed, fastest)) : "-",
                  absl::StrCat(site.contributed_steps()), absl::StrCat(site.forfeited_steps())});
  }
  return table.ToString();
}

std::vector<std::string> UnmetCriteria(const RunStatus& status, const RunCriteria& criteria) {
  const RunSummary s = SummarizeRun(status);
  std::vector<std::string> unmet;
  if (status.phase() != "FINISHED")
    unmet.push_back(absl::StrCat("the run is in phase ", status.phase(), ", not FINISHED"));
  if (s.rounds_committed < criteria.min_rounds) {
    unmet.push_back(absl::StrCat(s.rounds_committed, " rounds were committed; at least ", criteria.min_rounds,
                                 " are needed"));
  }
  if (criteria.max_held_out_loss > 0 && s.held_out_end == 0) {
    unmet.push_back("the held-out loss was not measured at the end");
  } else if (criteria.max_held_out_loss > 0 && !(s.held_out_end < criteria.max_held_out_loss)) {
    unmet.push_back(absl::StrFormat("the held-out loss ended at %.4f; below %g is needed", s.held_out_end,
                                    criteria.max_held_out_loss));
  }
  if (s.digests_compared == 0) unmet.push_back("no digests were compared");
  if (s.digests_deviating > 0) {
    unmet.push_back(absl::StrCat(s.digests_deviating, " of ", s.digests_compared, " digests deviated"));
  }
  if (s.rounds_lost > 0) unmet.push_back(absl::StrCat(s.rounds_lost, " rounds are missing from the ledger"));
  return unmet;
}

}  // namespace isthmus
