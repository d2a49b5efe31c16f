#include "daemon/rounds/admission.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/reason.h"

namespace isthmus {
namespace {

// Enough to tell "too old" from "never committed" for any site that was away for a while.
constexpr size_t kRememberedStates = 64;

AdmissionAnswer Refuse(absl::StatusCode code, std::string reason) {
  AdmissionAnswer answer;
  answer.admission = Admission::kRefuse;
  answer.status = absl::Status(code, reason);
  answer.reason = std::move(reason);
  return answer;
}

AdmissionAnswer Duplicate(const std::string& what, RoundId round) {
  AdmissionAnswer answer;
  answer.admission = Admission::kDuplicate;
  answer.counted_in = round;
  answer.reason = absl::StrCat(what, " already counts in round ", round);
  return answer;
}

}  // namespace

void CommittedWindow::Start(RoundId round, const Digest& state) {
  states_.clear();
  states_.push_back({round, state, {}});
}

void CommittedWindow::Committed(RoundId round, const Digest& state_after,
                                absl::Span<const CountedFrame> frames) {
  states_.push_back({round, state_after, {frames.begin(), frames.end()}});
  if (states_.size() > kRememberedStates) states_.pop_front();
  // A frame on a base that still counts was committed after that base, so older ones can be forgotten.
  if (states_.size() > kOldestBaseRounds) states_[states_.size() - 1 - kOldestBaseRounds].frames.clear();
}

std::optional<int> CommittedWindow::AgeOf(const Digest& state) const {
  for (size_t age = 0; age < states_.size(); ++age) {
    if (states_[states_.size() - 1 - age].digest == state) return static_cast<int>(age);
  }
  return std::nullopt;
}

std::optional<RoundId> CommittedWindow::RoundOfFrame(const CountedFrame& frame, const Digest& base) const {
  for (auto it = states_.rbegin(); it != states_.rend(); ++it) {
    // From here on the base is no older than the commits, so its frame cannot be in them.
    if (it->digest == base) return std::nullopt;
    if (std::find(it->frames.begin(), it->frames.end(), frame) != it->frames.end()) return it->round;
  }
  return std::nullopt;
}

AdmissionAnswer AdmitContribution(const ContributionClaim& claim, const RoundCore* open,
                                  const CommittedWindow& window) {
  const std::string what =
      absl::StrCat("contribution of ", LifeText(claim.life), " made for round ", claim.key.round);
  if (claim.frame.is_zero() || claim.base.is_zero()) {
    return Refuse(absl::StatusCode::kInvalidArgument, absl::StrCat(what, " names no frame or no base"));
  }
  if (std::optional<RoundId> round = window.RoundOfFrame({claim.life.name, claim.frame}, claim.base))
    return Duplicate(what, *round);
  if (open == nullptr) {
    return Refuse(absl::StatusCode::kUnavailable,
                  absl::StrCat(what, " came while no round is open: send it again"));
  }
  const RoundId round = open->key().round;
  if (claim.key.fragment != open->key().fragment || claim.key.round > round || claim.key.round < 1) {
    return Refuse(absl::StatusCode::kInvalidArgument,
                  absl::StrCat(what, ", fragment ", claim.key.fragment, ", does not fit the open round ",
                               round, ", fragment ", open->key().fragment));
  }
  if (open->HasFrame(claim.life.name, claim.frame)) return Duplicate(what, round);
  if (!open->IsMember(claim.life)) {
    return Refuse(absl::StatusCode::kFailedPrecondition,
                  absl::StrCat(what, " does not count: the site is not in the view of round ", round));
  }
  if (open->FrameOf(claim.life).has_value()) {
    return Refuse(
        absl::StatusCode::kFailedPrecondition,
        absl::StrCat(what, " does not count: another frame of the site is already in round ", round));
  }
  const std::optional<int> age = window.AgeOf(claim.base);
  if (!age.has_value() && claim.key.round <= window.oldest_round()) {
    return Refuse(absl::StatusCode::kOutOfRange, absl::StrCat(what, " is too old: nothing before round ",
                                                              window.oldest_round(), " is remembered"));
  }
  if (!age.has_value()) {
    return Refuse(absl::StatusCode::kDataLoss, absl::StrCat(what, " is on a base that was never committed (",
                                                            claim.base.ToHex(), "): the site must catch up"));
  }
  if (*age > kOldestBaseRounds) {
    return Refuse(absl::StatusCode::kOutOfRange,
                  absl::StrCat(what, " is too old: its base is ", *age, " rounds back, at most ",
                               kOldestBaseRounds, " count"));
  }
  AdmissionAnswer answer;
  if (open->is_last() && claim.key.round < round) {
    // It would take the seat of the frame that flushes what the site carries.
    answer.admission = Admission::kDrop;
    answer.is_late = true;
    answer.reason = absl::StrCat(what, " is late: the last round, ", round,
                                 ", takes only its own frames; what it held goes out with the next");
    return answer;
  }
  answer.admission = Admission::kAdmit;
  answer.is_late = claim.key.round < round;
  answer.counted_in = round;
  answer.reason = answer.is_late ? absl::StrCat(what, " is late and counts in round ", round)
                                 : absl::StrCat(what, " counts");
  return answer;
}

}  // namespace isthmus
