#include "tests/e2e/hand_client.h"

#include <utility>

#include "absl/synchronization/notification.h"

namespace isthmus {

HandClient::HandClient(RealClock* clock, const HostPort& coordinator, absl::Time deadline)
    : clock_(clock), deadline_(deadline), loop_(clock) {
  OnLoop([&] {
    GrpcLinkOptions options;
    options.coordinator = coordinator;
    link_ = *GrpcLink::Create(&loop_, options);
  });
}

HandClient::~HandClient() {
  OnLoop([&] { link_.reset(); });
  loop_.Stop();
}

void HandClient::OnLoop(const std::function<void()>& fn) {
  absl::Notification done;
  loop_.Post([&] {
    fn();
    done.Notify();
  });
  done.WaitForNotification();
}

void HandClient::SessionOpened() {
  absl::MutexLock lock(&mutex_);
  is_open_ = true;
}

void HandClient::MessageReceived(CoordinatorMessage message) {
  absl::MutexLock lock(&mutex_);
  received_.push_back(std::move(message));
}

void HandClient::SessionClosed(absl::Status why) {
  absl::MutexLock lock(&mutex_);
  is_closed_ = true;
  why_ = std::move(why);
}

absl::Status HandClient::Dial() {
  {
    absl::MutexLock lock(&mutex_);
    received_.clear();
    is_open_ = is_closed_ = false;
  }
  OnLoop([&] { link_->Dial(this, deadline_); });
  absl::MutexLock lock(&mutex_);
  const auto is_decided = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return is_open_ || is_closed_; };
  clock_->AwaitUntil(&mutex_, absl::Condition(&is_decided), deadline_);
  if (is_open_) return absl::OkStatus();
  return is_closed_ ? why_ : absl::DeadlineExceededError("the session neither opened nor closed");
}

void HandClient::Send(const WorkerMessage& message) {
  OnLoop([&] { link_->Send(message); });
}

CoordinatorMessage HandClient::Await(CoordinatorMessage::BodyCase kind) {
  absl::MutexLock lock(&mutex_);
  while (true) {
    const auto has_news = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !received_.empty() || is_closed_;
    };
    clock_->AwaitUntil(&mutex_, absl::Condition(&has_news), deadline_);
    if (received_.empty()) return {};
    CoordinatorMessage message = std::move(received_.front());
    received_.pop_front();
    if (message.body_case() == kind) return message;
  }
}

bool HandClient::AwaitClosed() {
  absl::MutexLock lock(&mutex_);
  return clock_->AwaitUntil(&mutex_, absl::Condition(&is_closed_), deadline_);
}

absl::Status HandClient::Upload(const ContributionHeader& header, const std::string& frame) {
  absl::Notification done;
  absl::Status result;
  const auto bytes = std::make_shared<const std::string>(frame);
  OnLoop([&] {
    link_->Upload(header, bytes, deadline_, [&](absl::Status status) {
      result = std::move(status);
      done.Notify();
    });
  });
  done.WaitForNotification();
  return result;
}

absl::StatusOr<std::string> HandClient::Fetch(const std::string& run_id, const Life& life,
                                              const BlobName& name) {
  absl::Notification done;
  absl::StatusOr<std::string> result = absl::InternalError("not fetched");
  OnLoop([&] {
    link_->Fetch(run_id, life, name, deadline_, [&](absl::StatusOr<std::string> bytes) {
      result = std::move(bytes);
      done.Notify();
    });
  });
  done.WaitForNotification();
  return result;
}

WorkerMessage HandClient::GoodHello(const std::string& site) {
  WorkerMessage message;
  message.mutable_hello()->set_protocol_version(kProtocolVersion);
  message.mutable_hello()->set_run_name("e2e");
  message.mutable_hello()->set_site(site);
  message.mutable_hello()->set_software("made by hand");
  return message;
}

Welcome HandClient::Join(const std::string& site, const std::string& data_digest, int64_t data_sequences) {
  if (!Dial().ok()) return {};
  Send(GoodHello(site));
  const Welcome welcome = Await(CoordinatorMessage::kWelcome).welcome();
  WorkerMessage message;
  Enlist* enlist = message.mutable_enlist();
  enlist->set_layout_digest(welcome.layout_digest());
  enlist->set_vocabulary(welcome.run_file().model().vocabulary());
  enlist->set_data_digest(data_digest);
  enlist->set_data_sequences(data_sequences);
  enlist->set_anchor_round(-1);
  enlist->set_tokens_per_step(64);
  Send(message);
  const CoordinatorMessage enlisted = Await(CoordinatorMessage::kEnlisted);
  if (!enlisted.has_enlisted()) return {};
  message.mutable_caught_up()->set_round(enlisted.enlisted().snapshot().round());
  message.mutable_caught_up()->set_state_digest(enlisted.enlisted().snapshot().state_digest());
  for (const CommitRecord& c : enlisted.enlisted().commits()) {
    message.mutable_caught_up()->set_round(c.key().round());
    message.mutable_caught_up()->set_state_digest(c.state_digest());
  }
  Send(message);
  return welcome;
}

}  // namespace isthmus
