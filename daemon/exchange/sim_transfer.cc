#include "daemon/exchange/sim_transfer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/random.h"
#include "daemon/exchange/partial_frames.h"

namespace isthmus {
namespace {

// What goes around a piece, an answer or a request, about.
constexpr int64_t kEnvelopeBytes = 12;

absl::Status BrokenBy(const Fault& fault) {
  return absl::UnavailableError(absl::StrCat("data connection broke (", FaultKindName(fault.kind), ")"));
}

bool LosesAnswer(const Fault& fault) {
  return fault.kind == FaultKind::kRequestLost || fault.kind == FaultKind::kReplyLost;
}

void FlipBit(std::string* bytes, int64_t at) { (*bytes)[at] ^= 0x10; }

}  // namespace

void SimTransfer::Carry(FaultSide side, TrafficBytes::Kind kind, int64_t bytes, std::function<void()> sent,
                        std::function<void()> arrived) {
  const bool is_up = side == FaultSide::kUp;
  const auto out = [kind, bytes, is_up](TransferCount* count) {
    count->bytes_out += bytes + kEnvelopeBytes;
    is_up ? count->classes.Up(kind, bytes) : count->classes.Down(kind, bytes);
  };
  const auto in = [kind, bytes, is_up](TransferCount* count) {
    count->bytes_in += bytes + kEnvelopeBytes;
    is_up ? count->classes.Up(kind, bytes) : count->classes.Down(kind, bytes);
  };
  auto left = [this, alive = alive_flag(), core = core_, is_up, out, sent = InAttempt(std::move(sent))] {
    if (is_up && *alive) out(count_);
    if (!is_up && core->hub_count() != nullptr) out(core->hub_count());
    sent();
  };
  auto here = [this, alive = alive_flag(), core = core_, is_up, in, arrived = InAttempt(std::move(arrived))] {
    if (!is_up && *alive) in(count_);
    if (is_up && core->hub_count() != nullptr) in(core->hub_count());
    arrived();
  };
  core_->CarryData(site_, side, bytes + kEnvelopeBytes, std::exchange(extra_delay_, absl::ZeroDuration()),
                   std::move(left), std::move(here));
}

void SimTransfer::StrikeWire(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kDelayed:
    case FaultKind::kReordered:
      extra_delay_ = fault.length;
      break;
    case FaultKind::kClogged:
      core_->ClogData(site_, fault.side, fault.length);
      if (fault.is_breaking) {
        loop()->RunAfter(fault.length, InAttempt([this, fault] { Break(BrokenBy(fault)); }));
      }
      break;
    case FaultKind::kPeerSlow:
      core_->SlowDown(site_, fault.factor, fault.length);
      break;
    default:
      break;
  }
}

SimUpload::SimUpload(SimCore* core, std::string site, TransferCount* count, const ContributionHeader& header,
                     SharedBytes frame, absl::Time deadline, std::function<void(absl::Status)> finish)
    : SimTransfer(core, std::move(site), count, deadline),
      header_(header),
      frame_(std::move(frame)),
      finish_(std::move(finish)) {}

SimUpload::~SimUpload() { Abandon(); }

void SimUpload::Abandon() {
  if (offer_ != 0 && IsHubOfAttempt()) core_->hub()->ReleaseUpload(header_, offer_);
  offer_ = 0;
}

std::string SimUpload::Describe() const {
  return absl::StrCat("upload of site '", site_, "' for round ", header_.key().round());
}

void SimUpload::BeginAttempt() {
  break_at_ = flip_at_ = -1;
  extra_delay_ = absl::ZeroDuration();
  fault_ = core_->plan().Strike(FaultTarget::kUpload, FaultSide::kUp, site_);
  std::function<void()> arrived = [this] { OfferArrived(); };
  if (fault_.has_value()) {
    StrikeWire(*fault_);
    if (fault_->kind == FaultKind::kRequestLost) {
      arrived = [this] {
        if (!fault_->is_silent) Break(BrokenBy(*fault_));
      };
    }
  }
  Carry(
      FaultSide::kUp, TrafficBytes::CONTROL, header_.ByteSizeLong(), [] {}, std::move(arrived));
}

void SimUpload::OfferArrived() {
  if (core_->hub() == nullptr) {
    Break(absl::UnavailableError("nobody answers at the coordinator's address"));
    return;
  }
  hub_life_ = core_->hub_life();
  const absl::StatusOr<PartialFrames::Offered> offered = core_->hub()->OfferUpload(header_);
  offer_ = offered.ok() ? offered->attempt : 0;
  CarryAnswer(FaultSide::kDown, [this, offered] { Offered(offered); });
}

void SimUpload::Offered(const absl::StatusOr<PartialFrames::Offered>& offered) {
  if (!offered.ok()) {
    if (IsWorthRetrying(offered.status())) {
      Break(offered.status());
    } else {
      Finish(offered.status());
    }
    return;
  }
  if (header_.frame_bytes() != static_cast<int64_t>(frame_->size())) {
    Finish(absl::InvalidArgumentError(absl::StrCat(Describe(), ": header says ", header_.frame_bytes(),
                                                   " bytes, the frame has ", frame_->size())));
    return;
  }
  sent_bytes_ = offered->held_bytes;
  const int64_t rest = static_cast<int64_t>(frame_->size()) - offered->held_bytes;
  if (fault_.has_value() && fault_->kind == FaultKind::kBroken) {
    break_at_ = offered->held_bytes + static_cast<int64_t>(rest * fault_->fraction);
  }
  if (fault_.has_value() && fault_->kind == FaultKind::kBytesFlipped && rest > 0) {
    flip_at_ = offered->held_bytes + RandomAt(fault_->seed, 0, attempt()) % rest;
  }
  SendPiece();
}

void SimUpload::SendPiece() {
  const int64_t offset = sent_bytes_;
  std::string piece = frame_->substr(offset, kPieceBytes);
  const int64_t bytes = piece.size();
  if (flip_at_ >= offset && flip_at_ < offset + bytes) FlipBit(&piece, flip_at_ - offset);
  sent_bytes_ += bytes;
  const bool is_last = sent_bytes_ == static_cast<int64_t>(frame_->size());
  Carry(
      FaultSide::kUp, TrafficBytes::CONTRIBUTION, bytes,
      [this, is_last] {
        if (!is_last) SendPiece();
      },
      [this, offset, piece = std::move(piece)] { PieceArrived(offset, piece); });
}

void SimUpload::PieceArrived(int64_t offset, const std::string& piece) {
  if (!IsHubOfAttempt()) {
    Break(absl::UnavailableError("the coordinator is gone"));
    return;
  }
  const absl::Status taken = core_->hub()->TakePiece(header_, offset, piece);
  const int64_t across = offset + static_cast<int64_t>(piece.size());
  if (!taken.ok()) {
    CarryAnswer(FaultSide::kDown, [this, taken] { Answered(taken); });
  } else if (break_at_ >= 0 && across >= break_at_) {
    Break(BrokenBy(*fault_));
  } else if (across == static_cast<int64_t>(frame_->size())) {
    AllArrived();
  }
}

void SimUpload::AllArrived() {
  SharedBytes undetected;
  if (flip_at_ >= 0 && fault_->is_undetected) {
    std::string flipped = *frame_;
    FlipBit(&flipped, flip_at_);
    undetected = std::make_shared<const std::string>(std::move(flipped));
  }
  const std::shared_ptr<const bool> alive = alive_flag();
  const absl::Status outcome = core_->hub()->FinishUpload(header_, undetected);
  if (!*alive) return;
  if (outcome.ok() && fault_.has_value() && fault_->kind == FaultKind::kDuplicated && IsHubOfAttempt()) {
    count_->bytes_out += frame_->size();
    core_->hub_count()->bytes_in += frame_->size();
    count_->classes.Up(TrafficBytes::CONTRIBUTION, frame_->size());
    core_->hub_count()->classes.Up(TrafficBytes::CONTRIBUTION, frame_->size());
    core_->site(site_).traffic.data_up += frame_->size();
    if (core_->hub()->OfferUpload(header_).ok() && IsHubOfAttempt()) {
      core_->hub()->FinishUpload(header_, frame_).IgnoreError();
    }
    if (!*alive) return;
  }
  absl::optional<Fault> down = core_->plan().Strike(FaultTarget::kUpload, FaultSide::kDown, site_);
  if (fault_.has_value() && fault_->kind == FaultKind::kReplyLost) down = fault_;
  std::function<void()> arrived = [this, outcome] { Answered(outcome); };
  if (down.has_value()) {
    StrikeWire(*down);
    const absl::Status broken = BrokenBy(*down);
    if (LosesAnswer(*down) && down->is_silent) {
      arrived = [] {};
    } else if (down->kind == FaultKind::kReplyLost) {
      arrived = [this, broken] { Finish(broken); };
    } else if (LosesAnswer(*down) || down->kind == FaultKind::kBroken ||
               down->kind == FaultKind::kBytesFlipped) {
      arrived = [this, broken] { Break(broken); };
    }
  }
  CarryAnswer(FaultSide::kDown, std::move(arrived));
}

void SimUpload::Answered(const absl::Status& outcome) {
  // Damaged on the way once: all of it again. Twice: the frame itself does not match its header.
  const bool is_again = absl::IsDataLoss(outcome) && ++data_losses_ < 2;
  // NOT_FOUND: what was held of it had to make room.
  if (is_again || IsWorthRetrying(outcome) || absl::IsNotFound(outcome)) {
    Break(outcome);
  } else {
    Finish(outcome);
  }
}

void SimUpload::Finish(const absl::Status& status) {
  EndAttempts();
  const auto finish = std::move(finish_);
  finish(status);  // destroys this
}

SimFetch::SimFetch(SimCore* core, std::string site, TransferCount* count, FetchRequest request,
                   absl::Time deadline, std::function<void(absl::StatusOr<std::string>)> finish)
    : SimTransfer(core, std::move(site), count, deadline),
      request_(std::move(request)),
      finish_(std::move(finish)) {}

std::string SimFetch::Describe() const {
  return absl::StrCat("fetch of ", BlobKind_Name(request_.kind()), " of round ", request_.round(),
                      " by site '", site_, "'");
}

void SimFetch::BeginAttempt() {
  break_at_ = flip_at_ = -1;
  extra_delay_ = absl::ZeroDuration();
  source_ = nullptr;
  request_.set_offset(received_.size());
  fault_ = core_->plan().Strike(FaultTarget::kFetch, FaultSide::kUp, site_);
  std::function<void()> arrived = [this] { RequestArrived(); };
  if (fault_.has_value()) {
    StrikeWire(*fault_);
    if (fault_->kind == FaultKind::kRequestLost || fault_->kind == FaultKind::kBroken ||
        fault_->kind == FaultKind::kBytesFlipped) {
      arrived = [this] {
        if (!fault_->is_silent) Break(BrokenBy(*fault_));
      };
    }
  }
  Carry(
      FaultSide::kUp, TrafficBytes::CONTROL, request_.ByteSizeLong(), [] {}, std::move(arrived));
}

void SimFetch::RequestArrived() {
  if (core_->hub() == nullptr) {
    Break(absl::UnavailableError("nobody answers at the coordinator's address"));
    return;
  }
  hub_life_ = core_->hub_life();
  const std::shared_ptr<const bool> alive = alive_flag();
  absl::StatusOr<std::shared_ptr<const BlobSource>> source = core_->hub()->OpenBlob(request_);
  if (!*alive) return;
  if (fault_.has_value() && fault_->kind == FaultKind::kDuplicated && IsHubOfAttempt()) {
    core_->hub()->OpenBlob(request_).IgnoreError();
    if (!*alive) return;
  }
  absl::optional<Fault> down = core_->plan().Strike(FaultTarget::kFetch, FaultSide::kDown, site_);
  if (fault_.has_value() && fault_->kind == FaultKind::kReplyLost) down = fault_;
  if (down.has_value()) StrikeWire(*down);
  if (down.has_value() && LosesAnswer(*down)) {
    const bool is_silent = down->is_silent;
    CarryAnswer(FaultSide::kDown, [this, is_silent, broken = BrokenBy(*down)] {
      if (!is_silent) Break(broken);
    });
    return;
  }
  if (!source.ok()) {
    CarryAnswer(FaultSide::kDown, [this, why = source.status()] {
      if (IsWorthRetrying(why)) {
        Break(why);
      } else {
        Finish(why);
      }
    });
    return;
  }
  source_ = *std::move(source);
  sent_bytes_ = request_.offset();
  const int64_t rest = source_->size() - sent_bytes_;
  if (down.has_value() && down->kind == FaultKind::kBroken) {
    break_at_ = sent_bytes_ + static_cast<int64_t>(rest * down->fraction);
  }
  if (down.has_value() && down->kind == FaultKind::kBytesFlipped && rest > 0) {
    flip_at_ = sent_bytes_ + RandomAt(down->seed, 1, attempt()) % rest;
  }
  SendPiece();
}

void SimFetch::SendPiece() {
  if (!IsHubOfAttempt()) {
    Break(absl::UnavailableError("the coordinator is gone"));
    return;
  }
  const int64_t offset = sent_bytes_;
  absl::StatusOr<std::string> piece = source_->Read(offset, std::min(kPieceBytes, source_->size() - offset));
  if (!piece.ok()) {
    CarryAnswer(FaultSide::kDown, [this, why = piece.status()] { Finish(why); });
    return;
  }
  const int64_t bytes = piece->size();
  if (flip_at_ >= offset && flip_at_ < offset + bytes) FlipBit(&*piece, flip_at_ - offset);
  sent_bytes_ += bytes;
  const bool is_last = sent_bytes_ >= source_->size() || bytes == 0;
  Carry(
      FaultSide::kDown, TrafficOf(request_.kind()), bytes,
      [this, is_last] {
        if (!is_last) SendPiece();
      },
      [this, is_last, piece = *std::move(piece)] { PieceArrived(piece, is_last); });
}

void SimFetch::PieceArrived(const std::string& piece, bool is_last) {
  received_ += piece;
  if (break_at_ >= 0 && static_cast<int64_t>(received_.size()) >= break_at_) {
    Break(absl::UnavailableError("data connection broke (broken)"));
  } else if (is_last) {
    Finish(std::move(received_));
  }
}

void SimFetch::Finish(absl::StatusOr<std::string> blob) {
  EndAttempts();
  const auto finish = std::move(finish_);
  finish(std::move(blob));  // destroys this
}

}  // namespace isthmus
