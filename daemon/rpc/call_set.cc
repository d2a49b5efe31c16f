#include "daemon/rpc/call_set.h"

#include <utility>

namespace isthmus {

void CallSet::Add(std::shared_ptr<Call> call) {
  absl::Status stopped;
  {
    absl::MutexLock lock(&mutex_);
    stopped = stopped_;
    const Call* key = call.get();
    calls_[key] = call;
  }
  if (!stopped.ok()) call->Wind(stopped);
}

void CallSet::Remove(const Call* call, const std::function<void(std::shared_ptr<Call>)>& bury) {
  absl::MutexLock lock(&mutex_);
  auto it = calls_.find(call);
  if (it == calls_.end()) return;
  std::shared_ptr<Call> last = std::move(it->second);
  calls_.erase(it);
  bury(std::move(last));
}

std::map<const Call*, std::shared_ptr<Call>> CallSet::Copy() const {
  absl::MutexLock lock(&mutex_);
  return calls_;
}

void CallSet::WindAll(const absl::Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = why;
  }
  for (const auto& [key, call] : Copy()) call->Wind(why);
}

void CallSet::AbortAll(const absl::Status& why) {
  for (const auto& [key, call] : Copy()) call->Abort(why);
}

bool CallSet::AwaitEmpty(Clock* clock, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  return clock->AwaitUntil(&mutex_, absl::Condition(this, &CallSet::IsEmpty), deadline);
}

}  // namespace isthmus
