#include "daemon/app/status_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/app/human_units.h"
#include "daemon/app/round_line.h"
#include "daemon/app/text_table.h"
#include "daemon/app/traffic_table.h"

namespace isthmus {
namespace {

std::string OutOf(int64_t done, int64_t total) {
  return total > 0 ? absl::StrCat(done, " of ", total) : absl::StrCat(done);
}

// The held-out loss measured last, with its round.
std::string NewestHeldOut(const RunStatus& status) {
  for (int i = status.commits_size() - 1; i >= 0; --i) {
    const CommitSummary& commit = status.commits(i);
    if (commit.held_out_tokens() > 0) {
      return absl::StrCat(HumanLoss(commit.held_out_loss()), " after round ", commit.round());
    }
  }
  return HumanLoss(status.held_out_loss_end() != 0 ? status.held_out_loss_end()
                                                   : status.held_out_loss_start());
}

std::string Header(const RunStatus& status) {
  std::string text = absl::StrCat("run        ", status.run_name(), "  (id ", status.run_id(), ", ",
                                  HumanCount(static_cast<double>(status.parameters())), " parameters, ",
                                  status.codec(), ")\n");
  if (!status.error_feedback().empty()) {
    absl::StrAppend(&text, "feedback   ", status.error_feedback(), "\n");
  }
  absl::StrAppend(&text, "phase      ", status.phase(), ", round ",
                  OutOf(status.round(), status.total_rounds()));
  if (status.phase() == "ROUND_OPEN") {
    absl::StrAppend(&text, ", open for ", HumanSeconds(status.seconds_since_open()));
  }
  absl::StrAppend(&text, "\nwaiting    ", status.waiting_for().empty() ? "for nothing" : status.waiting_for(),
                  "\n");
  absl::StrAppend(&text, "rounds     ", status.rounds_committed(), " committed, ", status.rounds_aborted(),
                  " aborted; ", status.contributions_refused(),
                  " contributions refused; coordinator restarted ", status.run_restarts(),
                  status.run_restarts() == 1 ? " time\n" : " times\n");
  absl::StrAppend(&text, "learning   held-out loss ", NewestHeldOut(status), "; ",
                  HumanCount(static_cast<double>(status.tokens())), " tokens");
  if (status.total_tokens() > 0) {
    absl::StrAppend(&text, " of ", HumanCount(static_cast<double>(status.total_tokens())));
  }
  absl::StrAppend(&text, "; ", status.sequences_trained_again(), " of ", status.sequences_trained(),
                  " sequences trained twice; ", status.forfeited_steps(), " steps forfeited\n");
  absl::StrAppend(&text, "agreement  anchor ", FullDigest(status.state_digest()), "; ",
                  status.digests_compared(), " digests compared, ", status.digests_deviating(),
                  " deviating\n");
  absl::StrAppend(&text, "bytes      ", HumanBytes(status.bytes_in()), " in, ",
                  HumanBytes(status.bytes_out()), " out on the coordinator's sockets; ",
                  HumanBytes(status.disk_bytes()), " on disk");
  if (status.disk_bound_bytes() > 0) {
    absl::StrAppend(&text, ", at most ", HumanBytes(status.disk_bound_bytes()));
  }
  absl::StrAppend(&text, "\ntraffic    ", TrafficLine(status), "\n");
  const std::string residual = ResidualLine(status);
  return residual.empty() ? text : absl::StrCat(text, "carried    ", residual, "\n");
}

std::string Rate(double per_second) { return per_second > 0 ? absl::StrFormat("%.2f", per_second) : "-"; }

std::string Sites(const RunStatus& status) {
  TextTable table({"<site", "life", "<state", "<doing", "steps/s", "tokens/s", "steps", "loss", "out", "in",
                   "computing", "waiting", "round trip", "rounds", "missed", "forfeited", "<frame",
                   "<last reason for missing a round"});
  for (const SiteStatus& site : status.sites()) {
    const SiteProgress& progress = site.progress();
    std::string doing = progress.activity();
    if (site.state() == "dead" || site.state() == "left" || site.state() == "suspect") {
      doing = absl::StrCat("silent for ", HumanSeconds(site.silence_seconds()));
    }
    const bool is_gone = site.state() == "dead" || site.state() == "left" || site.state() == "away";
    if (is_gone && site.silence_seconds() == 0) doing = "not heard since the coordinator's start";
    table.AddRow({site.site(), absl::StrCat(site.incarnation()), site.state(), doing,
                  Rate(progress.steps_per_second()),
                  progress.tokens_per_second() > 0 ? HumanCount(progress.tokens_per_second()) : "-",
                  absl::StrCat(progress.inner_steps()), HumanLoss(progress.loss()),
                  HumanBytes(progress.bytes_out()), HumanBytes(progress.bytes_in()),
                  HumanSeconds(progress.compute_seconds()), HumanSeconds(progress.wait_seconds()),
                  progress.round_trip_seconds() > 0
                      ? absl::StrFormat("%.1f ms", 1e3 * progress.round_trip_seconds())
                      : "-",
                  absl::StrCat(site.rounds_included()), absl::StrCat(site.rounds_missed()),
                  absl::StrCat(site.forfeited_steps(), " steps"),
                  site.has_contributed()        ? "in"
                  : progress.is_frame_pending() ? "sending"
                                                : "-",
                  site.last_miss_reason().empty() ? "-" : site.last_miss_reason()});
  }
  return status.sites().empty() ? "no sites yet\n" : table.ToString();
}

std::string Commits(const RunStatus& status, int count) {
  if (status.commits().empty() || count <= 0) return "no round committed yet\n";
  TextTable table({"round", "in", "training", "held-out", "tokens", "took", "<digest", "<why it closed"});
  for (int i = std::max(0, status.commits_size() - count); i < status.commits_size(); ++i) {
    const CommitSummary& commit = status.commits(i);
    table.AddRow({absl::StrCat(commit.round()), absl::StrCat(commit.included(), "/", commit.expected()),
                  HumanLoss(commit.training_loss()),
                  commit.held_out_tokens() > 0 ? HumanLoss(commit.held_out_loss()) : "-",
                  HumanCount(static_cast<double>(commit.tokens())), HumanSeconds(commit.round_seconds()),
                  FullDigest(commit.state_digest()), ReasonInRow(commit)});
  }
  return table.ToString();
}

}  // namespace

std::string StatusTable(const RunStatus& status, int commits) {
  return absl::StrCat(Header(status), "\n", Sites(status), "\n", Commits(status, commits));
}

}  // namespace isthmus
