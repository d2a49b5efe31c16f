#include "daemon/rounds/round.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/reason.h"

namespace isthmus {
namespace {

// Nothing is learned yet in these.
constexpr RoundId kRoundsWithoutGrace = 3;

int CeilDivide(int a, int b) { return (a + b - 1) / b; }

std::string SitesText(int n) { return absl::StrCat(n, n == 1 ? " site" : " sites"); }

}  // namespace

int QuorumOf(const RoundOptions& options, int view_size) {
  const int wanted = options.quorum > 0 ? options.quorum : CeilDivide(2 * view_size, 3);
  return std::max(1, std::min(wanted, view_size));
}

int MinimumOf(const RoundOptions& options, int view_size) {
  const int wanted = options.minimum > 0 ? options.minimum : CeilDivide(view_size, 2);
  return std::max(1, std::min(wanted, view_size));
}

std::string ReasonNotToOpen(const RoundOptions& options, int view_size) {
  const int needed = std::max(1, options.minimum);
  if (view_size >= needed) return "";
  return absl::StrCat("waiting for sites: ", view_size, " in, ", needed, " needed");
}

RoundCore::RoundCore(const RoundOptions& options, const RoundOpening& opening, absl::Time now)
    : options_(options),
      opening_(opening),
      quorum_(QuorumOf(options, opening.view.size())),
      minimum_(MinimumOf(options, opening.view.size())),
      opened_at_(now),
      deadline_(now + options.longest_round) {
  for (const SiteLife& life : opening.view) seats_[life];
}

bool RoundCore::HasGraceRule() const {
  return !opening_.is_last && opening_.grace.has_value() && opening_.key.round > kRoundsWithoutGrace;
}

absl::Time RoundCore::GraceEnd() const {
  if (!HasGraceRule() || arrived_ < quorum_) return absl::InfiniteFuture();
  return quorum_at_ + *opening_.grace;
}

RoundDecision RoundCore::ContributionArrived(const SiteLife& life, const Digest& frame, absl::Time now) {
  auto it = seats_.find(life);
  if (it != seats_.end() && !it->second.has_arrived && !is_decided_) {
    it->second.has_arrived = true;
    it->second.frame = frame;
    last_arrival_at_ = now;
    if (++arrived_ == quorum_) quorum_at_ = now;
  }
  return Decide(now);
}

RoundDecision RoundCore::SiteGone(const SiteLife& life, absl::string_view why, absl::Time now) {
  auto it = seats_.find(life);
  if (it != seats_.end() && it->second.gone.empty() && !is_decided_) {
    it->second.gone = why.empty() ? "gone" : std::string(why);
  }
  return Decide(now);
}

RoundDecision RoundCore::Tick(absl::Time now) { return Decide(now); }

RoundDecision RoundCore::Close(CloseRule rule, absl::string_view reason) {
  is_decided_ = true;
  RoundDecision decision;
  decision.verdict = RoundVerdict::kClose;
  decision.rule = rule;
  decision.reason = absl::StrCat("round ", opening_.key.round, " closed: ", reason);
  decision.included = Arrived();
  return decision;
}

RoundDecision RoundCore::Abort(absl::string_view reason) {
  is_decided_ = true;
  RoundDecision decision;
  decision.verdict = RoundVerdict::kAbort;
  decision.reason = absl::StrCat("round ", opening_.key.round, " aborted: ", reason);
  return decision;
}

RoundDecision RoundCore::Decide(absl::Time now) {
  RoundDecision wait;
  if (is_decided_) {
    wait.reason = absl::StrCat("round ", opening_.key.round, " is already closed");
    return wait;
  }
  const int members = seats_.size();
  const std::string count = absl::StrCat(arrived_, " of ", SitesText(members));
  const std::vector<SiteLife> missing = Missing();
  if (missing.empty()) {
    // Those that are gone cannot make up a number the user asked for; the default minimum gives way to them,
    // since the next view will be no larger.
    const int needed = std::max(1, std::min(options_.minimum, members));
    if (arrived_ < needed) {
      return Abort(absl::StrCat(count, " contributed, ", GoneText(), "; at least ", needed, " must"));
    }
    if (arrived_ == members) {
      return Close(CloseRule::kAllArrived, members == 1
                                               ? "its only site contributed"
                                               : absl::StrCat("all ", members, " sites contributed"));
    }
    return Close(CloseRule::kAllArrived,
                 absl::StrCat("all that are left contributed, ", count, "; ", GoneText()));
  }
  const std::string without = absl::StrCat("without ", LivesText(missing));
  if (now >= GraceEnd()) {
    return Close(CloseRule::kQuorumAndGrace,
                 absl::StrCat("quorum of ", quorum_, " and a grace of ", SecondsText(*opening_.grace),
                              " passed with ", count, ", ", without));
  }
  if (now >= deadline_) {
    const std::string deadline =
        absl::StrCat("deadline of ", SecondsText(options_.longest_round), " passed with ", count);
    if (arrived_ >= minimum_) return Close(CloseRule::kDeadline, absl::StrCat(deadline, ", ", without));
    return Abort(absl::StrCat(deadline, ", ", without, "; the minimum is ", minimum_));
  }
  wait.reason = WaitingFor(now);
  return wait;
}

absl::Time RoundCore::NextDeadline() const {
  if (is_decided_) return absl::InfiniteFuture();
  return std::min(GraceEnd(), deadline_);
}

std::string RoundCore::GoneText() const {
  std::vector<std::string> parts;
  for (const auto& [life, seat] : seats_) {
    if (!seat.gone.empty() && !seat.has_arrived)
      parts.push_back(absl::StrCat(LifeText(life), " ", seat.gone));
  }
  return parts.empty() ? "nobody else is in" : absl::StrJoin(parts, ", ");
}

std::string RoundCore::WaitingFor(absl::Time now) const {
  if (is_decided_) return absl::StrCat("round ", opening_.key.round, " is closed");
  std::string text = absl::StrCat("round ", opening_.key.round, " waits for ", LivesText(Missing()), ": ",
                                  arrived_, " of ", SitesText(seats_.size()), " in, quorum ", quorum_);
  if (opening_.is_last) {
    absl::StrAppend(&text, ", the last round waits for all");
  } else if (!HasGraceRule()) {
    absl::StrAppend(&text, ", no grace learned yet");
  } else if (arrived_ >= quorum_) {
    absl::StrAppend(&text, ", grace left ", SecondsText(GraceEnd() - now));
  } else {
    absl::StrAppend(&text, ", then a grace of ", SecondsText(*opening_.grace));
  }
  return absl::StrCat(text, ", deadline in ", SecondsText(deadline_ - now));
}

std::optional<Digest> RoundCore::FrameOf(const SiteLife& life) const {
  auto it = seats_.find(life);
  if (it == seats_.end() || !it->second.has_arrived) return std::nullopt;
  return it->second.frame;
}

bool RoundCore::HasFrame(const SiteName& site, const Digest& frame) const {
  for (auto it = seats_.lower_bound({site, 0}); it != seats_.end() && it->first.name == site; ++it) {
    if (it->second.has_arrived && it->second.frame == frame) return true;
  }
  return false;
}

std::vector<SiteLife> RoundCore::Arrived() const {
  std::vector<SiteLife> out;
  for (const auto& [life, seat] : seats_) {
    if (seat.has_arrived) out.push_back(life);
  }
  return out;
}

std::vector<SiteLife> RoundCore::Missing() const {
  std::vector<SiteLife> out;
  for (const auto& [life, seat] : seats_) {
    if (!seat.has_arrived && seat.gone.empty()) out.push_back(life);
  }
  return out;
}

}  // namespace isthmus
