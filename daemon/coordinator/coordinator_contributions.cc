// Coordinator: frames on their way in, from the offer to a seat in the round or a refusal.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/coordinator/coordinator.h"
#include "daemon/coordinator/message_fields.h"
#include "daemon/coordinator/told_fields.h"

namespace isthmus {
namespace {

constexpr int64_t kRememberedRounds = 64;
// Far above what a round can hold, and sums of them over a run stay whole numbers.
constexpr int64_t kMostSteps = int64_t{1} << 32, kMostTokens = int64_t{1} << 44;

// What a site says of its work, before it is summed and shown.
absl::Status CheckFigures(const ContributionHeader& h) {
  const auto within = [](int64_t value, int64_t most) { return value >= 0 && value <= most; };
  const char* field = !within(h.steps(), kMostSteps)              ? "steps"
                      : !within(h.inner_steps(), kMostTokens)     ? "inner_steps"
                      : !within(h.tokens(), kMostTokens)          ? "tokens"
                      : !within(h.tokens_per_step(), kMostTokens) ? "tokens_per_step"
                      : !std::isfinite(h.loss())                  ? "loss"
                                                                  : nullptr;
  if (field == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("contribution of site ", h.life().site(), " to round ",
                                                 h.key().round(), ": ", field, " is impossible"));
}

}  // namespace

Coordinator::FrameId Coordinator::FrameIdOf(const ContributionHeader& h) {
  return {h.life().site(), h.key().round(), h.frame_digest()};
}

void Coordinator::Settle(const ContributionHeader& h) {
  settled_.insert(FrameIdOf(h));
  // Uploads end with the session that saw them dropped, so old ones cannot come again.
  for (auto it = settled_.begin(); it != settled_.end();) {
    it = std::get<1>(*it) + kRememberedRounds < last_round_ ? settled_.erase(it) : std::next(it);
  }
}

absl::Status Coordinator::CheckNews(const ContributionHeader& h) const {
  const FrameId id = FrameIdOf(h);
  const std::string what =
      absl::StrCat("the frame of site ", h.life().site(), " made for round ", h.key().round());
  if (settled_.count(id) > 0)
    return absl::AbortedError(absl::StrCat(what, " was refused before, or its round aborted"));
  const absl::StatusOr<Digest> base = DigestFromBytes(h.base_digest());
  if (base.ok() && window_.RoundOfFrame({h.life().site(), FrameDigestOf(h)}, *base).has_value())
    return absl::AlreadyExistsError(absl::StrCat(what, " is committed"));
  bool is_here = decoding_.count(id) > 0;
  for (const auto& [life, r] : arrived_) is_here |= FrameIdOf(r.header) == id;
  for (const Received& r : held_) is_here |= FrameIdOf(r.header) == id;
  return is_here ? absl::AlreadyExistsError(absl::StrCat(what, " is here")) : absl::OkStatus();
}

int64_t Coordinator::StepsSpokenFor(const SiteName& site) const {
  int64_t steps = 0;
  for (const auto& [life, r] : arrived_) {
    if (life.name == site) steps = std::max(steps, r.header.inner_steps());
  }
  return steps;
}

std::string Coordinator::CodecOfRound(int64_t round) const {
  if (auto it = codecs_.find(round); it != codecs_.end()) return it->second;
  for (const CommitRecord& c : state_.commits) {
    if (c.key().round() == round && !c.codec().empty()) return c.codec();
  }
  return state_.run.codec;
}

absl::Status Coordinator::UploadOffered(const ContributionHeader& h) {
  if (h.run_id() != state_.run.run_id) {
    return absl::FailedPreconditionError(
        absl::StrCat("this is run ", state_.run.run_id, ", not ", h.run_id()));
  }
  const SiteLife life = LifeOf(h.life());
  if (absl::Status s = membership_.CheckLife(life); !s.ok()) return s;
  if (absl::Status s = CheckTold(h); !s.ok()) return s;
  if (absl::Status s = CheckNews(h); !s.ok()) {
    // The word may have been lost with a session.
    if (round_ != nullptr && opening_ && round_->HasFrame(life.name, FrameDigestOf(h)))
      SendOutcome(h, true, "already here", false);
    return s;
  }
  if (phase_ == Phase::kFinished || phase_ == Phase::kFarewell)
    return absl::OutOfRangeError("the run is over");
  if (absl::Status s = CheckFigures(h); !s.ok()) return s;
  const absl::StatusOr<std::unique_ptr<Codec>> codec = ParseCodecSpec(CodecOfRound(h.key().round()));
  if (!codec.ok()) return codec.status();
  const int64_t bound = (*codec)->BoundBytes(anchor_->table().layout());
  if (h.frame_bytes() < 0 || h.frame_bytes() > bound) {
    return absl::InvalidArgumentError(absl::StrCat("a frame of ", h.frame_bytes(), " bytes from site ",
                                                   life.name, " is above the bound of ", bound));
  }
  return absl::OkStatus();
}

void Coordinator::UploadReceived(const ContributionHeader& header, SharedBytes frame) {
  if (is_failed_ || phase_ == Phase::kFinished || phase_ == Phase::kFarewell) return;
  if (absl::Status s = CheckNews(header); !s.ok()) {
    if (absl::IsAborted(s)) SendOutcome(header, false, std::string(s.message()), false);
    return;  // what is here already was answered, or will be
  }
  decoding_.insert(FrameIdOf(header));
  auto decoded =
      std::make_shared<absl::StatusOr<std::shared_ptr<const CheckedFrame>>>(absl::InternalError("not read"));
  seams_.work->Run(
      "decode",
      [this, decoded, frame, spec = CodecOfRound(header.key().round())] {
        *decoded = anchor_->Check(spec, *frame);
      },
      Guard([this, decoded, header] { FrameDecoded(header, std::move(*decoded)); }));
}

void Coordinator::FrameDecoded(const ContributionHeader& header,
                               absl::StatusOr<std::shared_ptr<const CheckedFrame>> frame) {
  decoding_.erase(FrameIdOf(header));
  if (!frame.ok()) {
    // Damaged on the way or by the sender: once more, then never.
    if (++damaged_[header.life().site() + header.frame_digest()] == 1) {
      return SendOutcome(header, false, std::string(frame.status().message()), true);
    }
    return RefuseContribution(header, frame.status());
  }
  Received r;
  r.header = header;
  r.frame = *std::move(frame);
  if (phase_ == Phase::kOpen) return Admit(r);
  held_.push_back(std::move(r));
}

void Coordinator::Admit(const Received& r) {
  if (phase_ != Phase::kOpen) {
    held_.push_back(r);
    return;
  }
  ContributionClaim claim;
  claim.life = LifeOf(r.header.life());
  claim.key = {r.header.key().round(), r.header.key().fragment()};
  const absl::StatusOr<Digest> base = DigestFromBytes(r.header.base_digest());
  const absl::StatusOr<Digest> frame = DigestFromBytes(r.header.frame_digest());
  if (!base.ok() || !frame.ok())
    return RefuseContribution(r.header, absl::InvalidArgumentError("bad digest"));
  claim.base = *base;
  claim.frame = *frame;
  const AdmissionAnswer answer = AdmitContribution(claim, round_.get(), window_);
  if (answer.admission == Admission::kDrop) {
    log_.Info(answer.reason);
    Settle(r.header);
    return SendOutcome(r.header, false, answer.reason, false);
  }
  if (answer.admission == Admission::kRefuse) {
    if (absl::IsUnavailable(answer.status)) {
      held_.push_back(r);
      return;
    }
    RefuseContribution(r.header, answer.status);
    if (absl::IsDataLoss(answer.status)) {
      // The base is the digest of the sender's anchor: this was a comparison too.
      ++digests_compared_;
      ++digests_deviating_;
      SendResync(claim.life, answer.reason);
    }
    return;
  }
  CoordinatorMessage out;
  ContributionOutcome* o = out.mutable_contribution_outcome();
  o->set_frame_digest(r.header.frame_digest());
  o->set_is_admitted(true);
  o->mutable_key()->set_round(answer.counted_in);
  o->set_reason(answer.reason);
  SendTo(claim.life.name, out);
  if (answer.admission == Admission::kDuplicate) return;
  std::vector<TrainedRange> ranges;
  for (const TrainedSpan& s : r.header.trained()) ranges.push_back({s.lease(), s.begin(), s.end()});
  if (absl::Status s = leases_->Contributed(claim.life, claim.frame, ranges); !s.ok()) {
    log_.Warning("site ", claim.life.name, " lists sequences it has no lease for: ", s.message());
  }
  const double rate = book_.at(claim.life.name).progress.upload_bytes_per_second();
  if (rate > 0) pace_[claim.life.name].Uploaded(absl::Seconds(r.header.frame_bytes() / rate));
  if (answer.is_late) LearnLateness(r.header.key().round());
  // A site that was not done when a round closed makes its frame for the next one: it was late for the one it
  // missed all the same. Unlearned, a grace too short has sites miss rounds in turn for ever.
  if (const auto missed = missed_.find(claim.life.name); missed != missed_.end()) {
    LearnLateness(missed->second);
    missed_.erase(missed);
  }
  arrived_[claim.life] = r;
  last_arrived_ = claim.life.name;
  Decide(round_->ContributionArrived(claim.life, claim.frame, Now()));
  ArmTimers();
}

void Coordinator::LearnLateness(int64_t round) {
  const auto closed = quorum_at_.find(round);
  if (closed != quorum_at_.end()) grace_.LateArrival(closed->first, Now() - closed->second);
}

void Coordinator::SendOutcome(const ContributionHeader& header, bool is_admitted, const std::string& reason,
                              bool is_retryable) {
  CoordinatorMessage out;
  ContributionOutcome* o = out.mutable_contribution_outcome();
  o->set_frame_digest(header.frame_digest());
  o->set_is_admitted(is_admitted);
  if (is_admitted && opening_) *o->mutable_key() = opening_->key();
  o->set_reason(reason);
  o->set_is_retryable(is_retryable);
  SendTo(header.life().site(), out);
}

void Coordinator::RefuseContribution(const ContributionHeader& header, const absl::Status& status) {
  ++refused_;
  Settle(header);
  const SiteLife life = LifeOf(header.life());
  const std::string reason = absl::StrCat("contribution of site ", life.name, " to round ",
                                          header.key().round(), " refused: ", status.message());
  log_.Warning(reason);
  book_.at(life.name).last_miss_reason = reason;
  LedgerWrite write;
  write.events.push_back(MakeEvent(EventRecord::CONTRIBUTION_REFUSED, life, reason));
  // Told only once it is written, like everything.
  Persist(std::move(write), [this, header, reason] { SendOutcome(header, false, reason, false); });
}

}  // namespace isthmus
