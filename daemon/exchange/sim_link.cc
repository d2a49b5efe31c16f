#include "daemon/exchange/sim_link.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace isthmus {
namespace {

// What opening and ending a connection costs on the wire, about.
constexpr int64_t kDialBytes = 64;
constexpr int64_t kCloseBytes = 9;

}  // namespace

SimLink::SimLink(std::shared_ptr<SimCore> core, std::string site)
    : core_(std::move(core)), site_(std::move(site)) {
  id_ = core_->AddLink(this);
}

SimLink::~SimLink() { Kill(); }

void SimLink::Kill() {
  *is_alive_ = false;
  is_alive_ = std::make_shared<bool>(true);
  ++dial_;
  core_->loop()->Cancel(dial_timer_);
  state_ = State::kIdle;
  uploads_.clear();
  fetches_.clear();
  core_->RemoveLink(id_);
  core_->BreakSessions(id_, absl::UnavailableError(absl::StrCat("site '", site_, "' is gone")));
}

void SimLink::Dial(WorkerLink::Listener* listener, absl::Time deadline) {
  if (state_ != State::kIdle || core_->FindLink(id_) != this) return;
  state_ = State::kDialling;
  listener_ = listener;
  const int64_t dial = ++dial_;
  dial_timer_ = core_->loop()->RunAt(deadline, [this, alive = is_alive_, dial] {
    if (*alive && dial == dial_) {
      End(absl::UnavailableError(absl::StrCat("site '", site_, "': no answer from the coordinator in time")));
    }
  });
  count_.bytes_out += kDialBytes;
  core_->site(site_).control_up.Send(kDialBytes, nullptr, [this, alive = is_alive_, dial] {
    if (*alive && dial == dial_) DialArrived(dial);
  });
}

// At the hub's end of the wire.
void SimLink::DialArrived(int64_t dial) {
  SessionId session = 0;
  if (core_->hub() != nullptr) {
    session = core_->OpenSession(id_);
    core_->hub_count()->bytes_in += kDialBytes;
    core_->hub_count()->bytes_out += kDialBytes;
  }
  // Queued before the hub's first message, so that it arrives before.
  core_->site(site_).control_down.Send(
      kDialBytes, nullptr, [this, core = core_.get(), alive = is_alive_, dial, session] {
        if (*alive && dial == dial_) {
          DialAnswered(dial, session);
        } else {
          core->BreakSession(session, absl::UnavailableError("the worker gave up the session"));
        }
      });
  if (session != 0) core_->hub()->Accept(session, id_, site_);
}

void SimLink::DialAnswered(int64_t dial, SessionId session) {
  if (session == 0) {
    End(absl::UnavailableError(
        absl::StrCat("site '", site_, "': nobody answers at the coordinator's address")));
    return;
  }
  count_.bytes_in += kDialBytes;
  if (!core_->HasSession(session)) {
    End(absl::UnavailableError(absl::StrCat("site '", site_, "': session broke while it opened")));
    return;
  }
  core_->loop()->Cancel(dial_timer_);
  state_ = State::kOpen;
  session_ = session;
  listener_->SessionOpened();
}

void SimLink::End(const absl::Status& why) {
  core_->loop()->Cancel(dial_timer_);
  ++dial_;
  state_ = State::kIdle;
  session_ = 0;
  listener_->SessionClosed(why);
}

void SimLink::Deliver(SessionId session, const CoordinatorMessage& message) {
  if (state_ != State::kOpen || session != session_) return;
  const int64_t bytes = message.ByteSizeLong();
  count_.bytes_in += bytes;
  count_.classes.Down(TrafficBytes::CONTROL, bytes);
  listener_->MessageReceived(message);
}

void SimLink::SessionEnded(SessionId session, const absl::Status& why) {
  if (state_ == State::kOpen && session == session_) End(why);
}

void SimLink::Send(const WorkerMessage& message) {
  if (state_ != State::kOpen) return;
  const int64_t bytes = message.ByteSizeLong();
  count_.bytes_out += bytes;
  count_.classes.Up(TrafficBytes::CONTROL, bytes);
  core_->CarryControl(site_, FaultSide::kUp, session_, bytes,
                      [core = core_.get(), session = session_, message] {
                        if (core->hub() != nullptr) core->hub()->Deliver(session, message);
                      });
}

void SimLink::Close() {
  uploads_.clear();
  fetches_.clear();
  core_->loop()->Cancel(dial_timer_);
  ++dial_;
  if (state_ == State::kOpen) {
    core_->site(site_).control_up.Send(kCloseBytes, nullptr, [core = core_.get(), session = session_] {
      if (!core->HasSession(session)) return;
      core->ForgetSession(session);
      if (core->hub() != nullptr) core->hub()->SessionEnded(session, absl::OkStatus());
    });
  }
  state_ = State::kIdle;
  session_ = 0;
}

void SimLink::Upload(const ContributionHeader& header, SharedBytes frame, absl::Time deadline,
                     std::function<void(absl::Status)> done) {
  if (core_->FindLink(id_) != this) return;
  const int64_t id = next_transfer_++;
  uploads_[id] = std::make_unique<SimUpload>(core_.get(), site_, &count_, header, std::move(frame), deadline,
                                             [this, id, done = std::move(done)](const absl::Status& status) {
                                               const auto finished = std::move(uploads_[id]);
                                               uploads_.erase(id);
                                               done(status);
                                             });
  uploads_[id]->Start();
}

void SimLink::Fetch(const std::string& run_id, const Life& life, const BlobName& name, absl::Time deadline,
                    std::function<void(absl::StatusOr<std::string>)> done) {
  if (core_->FindLink(id_) != this) return;
  FetchRequest request;
  request.set_run_id(run_id);
  request.set_kind(name.kind);
  request.set_round(name.round);
  request.set_fragment(name.fragment);
  *request.mutable_life() = life;
  const int64_t id = next_transfer_++;
  fetches_[id] =
      std::make_unique<SimFetch>(core_.get(), site_, &count_, std::move(request), deadline,
                                 [this, id, done = std::move(done)](absl::StatusOr<std::string> blob) {
                                   const auto finished = std::move(fetches_[id]);
                                   fetches_.erase(id);
                                   done(std::move(blob));
                                 });
  fetches_[id]->Start();
}

}  // namespace isthmus
