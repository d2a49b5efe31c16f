#include "daemon/exchange/sim_hub.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"

namespace isthmus {
namespace {

// The end of a stream costs a frame header on the wire.
constexpr int64_t kCloseBytes = 9;

}  // namespace

SimHub::SimHub(std::shared_ptr<SimCore> core, int64_t held_frames_bytes)
    : core_(std::move(core)), frames_(held_frames_bytes) {}

SimHub::~SimHub() {
  *is_alive_ = false;
  Stop();
}

absl::Status SimHub::Start(Hub::Listener* listener) {
  if (core_->hub() != nullptr) {
    return absl::UnavailableError("the simulated network's one address is taken by a running hub");
  }
  listener_ = listener;
  core_->SetHub(this, &count_);
  return absl::OkStatus();
}

void SimHub::Stop() {
  if (is_running()) core_->RemoveHub("the coordinator is gone");
  listener_ = nullptr;
  sessions_.clear();
}

void SimHub::Accept(SessionId session, LinkId link, const std::string& site) {
  sessions_[session] = {link, site, false};
  listener_->SessionOpened(session);
}

void SimHub::Send(SessionId session, const CoordinatorMessage& message) {
  auto it = sessions_.find(session);
  if (!is_running() || it == sessions_.end() || it->second.is_closing) return;
  const int64_t bytes = message.ByteSizeLong();
  count_.bytes_out += bytes;
  count_.classes.Down(TrafficBytes::CONTROL, bytes);
  core_->CarryControl(it->second.site, FaultSide::kDown, session, bytes,
                      [core = core_.get(), link = it->second.link, session, message] {
                        if (SimLinkEnd* end = core->FindLink(link)) end->Deliver(session, message);
                      });
}

void SimHub::CloseSession(SessionId session) {
  auto it = sessions_.find(session);
  if (!is_running() || it == sessions_.end() || it->second.is_closing) return;
  it->second.is_closing = true;
  SimCore* core = core_.get();
  core_->site(it->second.site)
      .control_down.Send(
          kCloseBytes,
          [this, alive = is_alive_, session] {
            if (*alive) SessionEnded(session, absl::OkStatus());
          },
          [core, link = it->second.link, session] {
            if (!core->HasSession(session)) return;
            core->ForgetSession(session);
            if (SimLinkEnd* end = core->FindLink(link)) {
              end->SessionEnded(session, absl::UnavailableError("the coordinator closed the session"));
            }
          });
}

void SimHub::Deliver(SessionId session, const WorkerMessage& message) {
  auto it = sessions_.find(session);
  if (!is_running() || it == sessions_.end() || it->second.is_closing) return;
  const int64_t bytes = message.ByteSizeLong();
  count_.bytes_in += bytes;
  count_.classes.Up(TrafficBytes::CONTROL, bytes);
  listener_->MessageReceived(session, message);
}

void SimHub::SessionEnded(SessionId session, const absl::Status& why) {
  if (!is_running() || sessions_.erase(session) == 0) return;
  listener_->SessionClosed(session, why);
}

void SimHub::PublishStatus(const RunStatus& status) {
  if (is_running()) core_->PublishStatus(status);
}

absl::StatusOr<PartialFrames::Offered> SimHub::OfferUpload(const ContributionHeader& header) {
  ISTHMUS_RETURN_IF_ERROR(listener_->UploadOffered(header));
  return frames_.Offer(header);
}

absl::Status SimHub::TakePiece(const ContributionHeader& header, int64_t offset, const std::string& piece) {
  return frames_.Append(header, offset, piece);
}

absl::Status SimHub::FinishUpload(const ContributionHeader& header, SharedBytes undetected) {
  absl::StatusOr<SharedBytes> frame = frames_.Take(header);
  if (undetected != nullptr) frame = undetected;
  if (!frame.ok()) return frame.status();
  listener_->UploadReceived(header, *std::move(frame));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const BlobSource>> SimHub::OpenBlob(const FetchRequest& request) {
  return listener_->FetchRequested(request);
}

RunStatus SimHub::AskStatus(const StatusRequest& request) { return listener_->StatusRequested(request); }

}  // namespace isthmus
