#include "daemon/app/round_line.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "daemon/app/human_units.h"

namespace isthmus {
namespace {

constexpr char kHeadings[] = "%5s  %5s  %8s  %8s  %8s  %9s  %9s  %9s  %8s  %-12s  %s";

}  // namespace

std::string RoundLineHeadings() {
  return absl::StrFormat(kHeadings, "round", "sites", "training", "held-out", "tokens/s", "bytes out",
                         "bytes in", "computing", "waiting", "slowest", "why it closed");
}

std::string RoundLine(const CommitSummary& commit) {
  return absl::StrFormat(kHeadings, absl::StrCat(commit.round()),
                         absl::StrCat(commit.included(), "/", commit.expected()),
                         HumanLoss(commit.training_loss()),
                         commit.held_out_tokens() > 0 ? HumanLoss(commit.held_out_loss()) : "-",
                         commit.tokens_per_second() > 0 ? HumanCount(commit.tokens_per_second()) : "-",
                         HumanBytes(commit.bytes_up()), HumanBytes(commit.bytes_down()),
                         HumanSeconds(commit.compute_seconds()), HumanSeconds(commit.wait_seconds()),
                         commit.slowest_site().empty() ? "-" : commit.slowest_site(), ReasonInRow(commit));
}

std::string ReasonInRow(const CommitSummary& commit) {
  absl::string_view reason = commit.reason();
  absl::ConsumePrefix(&reason, absl::StrCat("round ", commit.round(), " closed: "));
  return std::string(reason);
}

}  // namespace isthmus
