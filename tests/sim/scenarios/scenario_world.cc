#include "tests/sim/scenarios/scenario_world.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/base/reason.h"

namespace isthmus {
namespace {

constexpr absl::Duration kBeat = absl::Seconds(1);

Digest StateOf(int64_t round) { return DigestOf(absl::StrCat("state ", round)); }
Digest FrameOf(absl::string_view name) { return DigestOf(absl::StrCat("frame ", name)); }

SiteLife ParseLife(absl::string_view text) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('/', 1));
  SiteLife life{parts.first, 0};
  (void)absl::SimpleAtoi(parts.second, &life.incarnation);
  return life;
}

double NumberOf(absl::string_view text) {
  double value = 0;
  (void)absl::SimpleAtod(text, &value);
  return value;
}

// "key=value" among the words.
bool FindSetting(const std::vector<std::string>& words, absl::string_view key, double* value) {
  for (absl::string_view word : words) {
    if (absl::ConsumePrefix(&word, absl::StrCat(key, "="))) {
      *value = NumberOf(word);
      return true;
    }
  }
  return false;
}

}  // namespace

ScenarioWorld::ScenarioWorld() : membership_(std::make_unique<Membership>()) { window_.Start(0, StateOf(0)); }

void ScenarioWorld::Say(absl::string_view line) {
  absl::StrAppendFormat(&out_, "%6.1f  %s\n", absl::ToDoubleSeconds(now_ - absl::UnixEpoch()), line);
}

void ScenarioWorld::Report(const MemberEffects& effects) {
  for (const MemberEffect& e : effects) {
    Say(absl::StrCat(MemberChangeName(e.change), ": ", e.reason));
    const bool is_gone = e.change == MemberChange::kLeft || e.change == MemberChange::kDied ||
                         e.change == MemberChange::kEvicted;
    if (!is_gone) continue;
    next_beat_.erase(e.life);
    const bool is_expected = round_ != nullptr && !round_->is_decided() && round_->IsMember(e.life);
    if (is_expected) Report(round_->SiteGone(e.life, MemberChangeName(e.change), now_));
  }
}

void ScenarioWorld::Report(const RoundDecision& decision) {
  Say(decision.reason);
  if (decision.verdict != RoundVerdict::kClose) return;
  std::vector<CountedFrame> frames;
  for (const SiteLife& life : decision.included) frames.push_back({life.name, *round_->FrameOf(life)});
  Say(absl::StrCat("committed with ", LivesText(decision.included)));
  const RoundId round = round_->key().round;
  window_.Committed(round, StateOf(round), frames);
  const absl::Duration lateness = round_->quorum_at() == absl::InfiniteFuture()
                                      ? absl::ZeroDuration()
                                      : round_->last_arrival_at() - round_->quorum_at();
  grace_.RoundClosed(round, lateness, now_ - round_->opened_at());
}

void ScenarioWorld::RunOptions(const Words& words) {
  double value = 0;
  if (FindSetting(words, "longest", &value)) options_.longest_round = absl::Seconds(value);
  if (FindSetting(words, "quorum", &value)) options_.quorum = static_cast<int>(value);
  if (FindSetting(words, "minimum", &value)) options_.minimum = static_cast<int>(value);
  if (!FindSetting(words, "round", &value)) return;
  next_round_ = static_cast<RoundId>(value);
  window_.Start(next_round_ - 1, StateOf(next_round_ - 1));
}

void ScenarioWorld::Join(const SiteLife& life, bool is_quiet) {
  const JoinAnswer answer = membership_->JoinRequested(life.name, life.incarnation, now_);
  if (!is_quiet) Report(answer.effects);
  if (answer.status.ok()) return;
  Say(absl::StrCat("refused (", absl::StatusCodeToString(answer.status.code()),
                   "): ", answer.status.message()));
}

void ScenarioWorld::RunSite(const std::string& verb, const Words& words) {
  const SiteLife life = ParseLife(words[0]);
  if (verb == "join")
    Join(life, false);
  else if (verb == "caught-up")
    Report(membership_->CaughtUp(life, now_));
  else if (verb == "beat")
    Report(membership_->HeartbeatReceived(life, now_));
  else if (verb == "heard")
    Report(membership_->Heard(life, now_));
  else if (verb == "lost")
    Report(membership_->ConnectionLost(life, now_));
  else if (verb == "restored")
    Report(membership_->ConnectionRestored(life, now_));
  else if (verb == "leave")
    Report(membership_->LeaveRequested(life, now_));
  else if (verb == "departed")
    Report(membership_->Departed(life, now_));
  else if (verb == "evict")
    Report(membership_->Evict(life, absl::StrJoin(words.begin() + 1, words.end(), " "), now_));
  else
    Say(absl::StrCat("? no such command: ", verb));
}

void ScenarioWorld::RunOpen(const Words& words) {
  if (round_ != nullptr && !round_->is_decided()) return Say("? a round is open");
  Report(membership_->FreezeView(now_));
  const View& view = membership_->view();
  const std::string why_not = ReasonNotToOpen(options_, view.members.size());
  if (!why_not.empty()) return Say(why_not);
  RoundOpening opening;
  opening.key = {next_round_++, 0};
  opening.view = view.members;
  opening.grace = grace_.Grace();
  double grace = 0;
  if (FindSetting(words, "grace", &grace)) opening.grace = absl::Seconds(grace);
  opening.is_last = std::find(words.begin(), words.end(), "last") != words.end();
  round_ = std::make_unique<RoundCore>(options_, opening, now_);
  Say(absl::StrCat("round ", opening.key.round, " opened on view ", view.id, ": ", LivesText(view.members),
                   "; quorum ", round_->quorum(), ", minimum ", round_->minimum()));
}

void ScenarioWorld::RunContribute(const Words& words) {
  if (words.size() < 2) return Say("? contribute LIFE FRAME");
  const bool is_open = round_ != nullptr && !round_->is_decided();
  ContributionClaim claim;
  claim.life = ParseLife(words[0]);
  claim.frame = FrameOf(words[1]);
  double number = static_cast<double>(next_round_ - 1);
  FindSetting(words, "round", &number);
  claim.key = {static_cast<RoundId>(number), 0};
  number = static_cast<double>(window_.newest_round());
  FindSetting(words, "base", &number);
  claim.base = StateOf(static_cast<int64_t>(number));
  const absl::Status life = membership_->CheckLife(claim.life);
  if (!life.ok()) return Say(absl::StrCat("refused: ", life.message()));
  Report(membership_->Heard(claim.life, now_));
  const AdmissionAnswer answer = AdmitContribution(claim, is_open ? round_.get() : nullptr, window_);
  if (answer.admission == Admission::kDrop) return Say(absl::StrCat("dropped: ", answer.reason));
  if (!answer.status.ok()) {
    return Say(
        absl::StrCat("refused (", absl::StatusCodeToString(answer.status.code()), "): ", answer.reason));
  }
  Say(absl::StrCat(answer.admission == Admission::kDuplicate ? "duplicate: " : "", answer.reason));
  if (answer.admission == Admission::kAdmit)
    Report(round_->ContributionArrived(claim.life, claim.frame, now_));
}

void ScenarioWorld::RunWait(absl::Duration d) {
  const absl::Time end = now_ + d;
  while (true) {
    // Heartbeats first: at equal times they keep a site alive.
    absl::Time beat = absl::InfiniteFuture();
    for (const auto& [life, at] : next_beat_) beat = std::min(beat, at);
    const absl::Time deadline = std::min(membership_->NextDeadline(),
                                         round_ == nullptr ? absl::InfiniteFuture() : round_->NextDeadline());
    if (std::min(beat, deadline) > end) break;
    now_ = std::max(now_, std::min(beat, deadline));
    if (beat <= deadline) {
      for (auto& [life, at] : next_beat_) {
        if (at != beat) continue;
        at += kBeat;
        Report(membership_->HeartbeatReceived(life, now_));
      }
      continue;
    }
    Report(membership_->Tick(now_));
    if (round_ == nullptr || round_->is_decided()) continue;
    const RoundDecision decision = round_->Tick(now_);
    if (decision.verdict != RoundVerdict::kWait) Report(decision);
  }
  now_ = end;
}

void ScenarioWorld::RunStatus() {
  for (const MemberStatus& s : membership_->Snapshot(now_)) {
    Say(absl::StrFormat("%s %s%s, silent %s of %s", LifeText(s.life), SiteStateName(s.state),
                        s.is_connected ? "" : ", disconnected", SecondsText(s.silence),
                        SecondsText(s.suspected_after)));
  }
}

std::string ScenarioWorld::Run(absl::string_view command) {
  out_.clear();
  Words words = absl::StrSplit(command, ' ', absl::SkipEmpty());
  const std::string verb = words.empty() ? "" : words[0];
  if (!words.empty()) words.erase(words.begin());
  if (verb == "options")
    RunOptions(words);
  else if (verb == "status")
    RunStatus();
  else if (verb == "waiting")
    Say(round_ == nullptr ? "no round was opened" : round_->WaitingFor(now_));
  else if (verb == "open")
    RunOpen(words);
  else if (words.empty())
    Say(absl::StrCat("? incomplete: ", command));
  else if (verb == "wait")
    RunWait(absl::Seconds(NumberOf(words[0])));
  else if (verb == "contribute")
    RunContribute(words);
  else if (verb == "restart") {
    const View view = membership_->view();
    membership_ = std::make_unique<Membership>();
    membership_->Restore(view, absl::Seconds(NumberOf(words[0])), now_);
    next_beat_.clear();
  } else if (verb == "alive") {
    for (const std::string& word : words) next_beat_[ParseLife(word)] = now_ + kBeat;
  } else if (verb == "silent") {
    for (const std::string& word : words) next_beat_.erase(ParseLife(word));
  } else if (verb == "in") {
    for (const std::string& word : words) {
      const SiteLife life = ParseLife(word);
      Join(life, true);
      membership_->CaughtUp(life, now_);
      next_beat_[life] = now_ + kBeat;
    }
  } else {
    RunSite(verb, words);
  }
  return out_;
}

}  // namespace isthmus
