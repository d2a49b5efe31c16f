#include "daemon/base/event_loop.h"

#include <algorithm>

namespace isthmus {

ThreadLoop::ThreadLoop(Clock* clock) : clock_(clock), thread_([this] { Main(); }) {}

ThreadLoop::~ThreadLoop() { Stop(); }

void ThreadLoop::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  if (thread_.joinable()) thread_.join();
  std::map<std::pair<absl::Time, TimerId>, std::function<void()>> dropped;
  {
    absl::MutexLock lock(&mutex_);
    dropped.swap(queue_);
    due_.clear();
  }
  // What the callbacks hold dies here, without the lock: it may use the loop as it does.
}

// In the order of time, so that a stream of posts cannot keep a timer that is due from running.
void ThreadLoop::Post(std::function<void()> fn) { RunAt(absl::InfinitePast(), std::move(fn)); }

TimerId ThreadLoop::RunAt(absl::Time when, std::function<void()> fn) {
  absl::MutexLock lock(&mutex_);
  const TimerId id = next_id_++;
  when = std::max(when, clock_->SteadyNow());
  queue_[{when, id}] = std::move(fn);
  due_[id] = when;
  changed_ = true;
  return id;
}

void ThreadLoop::Cancel(TimerId id) {
  std::function<void()> dropped;  // dies after the lock is given back, for the same reason
  absl::MutexLock lock(&mutex_);
  auto it = due_.find(id);
  if (it == due_.end()) return;
  auto entry = queue_.find({it->second, id});
  dropped = std::move(entry->second);
  queue_.erase(entry);
  due_.erase(it);
}

void ThreadLoop::Main() {
  while (true) {
    std::function<void()> fn;
    {
      absl::MutexLock lock(&mutex_);
      changed_ = false;
      const absl::Time next = queue_.empty() ? absl::InfiniteFuture() : queue_.begin()->first.first;
      if (!stop_ && next > clock_->SteadyNow()) {
        clock_->AwaitUntil(&mutex_, absl::Condition(this, &ThreadLoop::HasNews), next);
      }
      if (stop_) return;
      if (queue_.empty() || queue_.begin()->first.first > clock_->SteadyNow()) continue;
      fn = std::move(queue_.begin()->second);
      due_.erase(queue_.begin()->first.second);
      queue_.erase(queue_.begin());
    }
    fn();
  }
}

ThreadRunner::ThreadRunner(EventLoop* loop) : loop_(loop), thread_([this] { Main(); }) {}

ThreadRunner::~ThreadRunner() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  thread_.join();
}

void ThreadRunner::Run(absl::string_view, std::function<void()> work, std::function<void()> done) {
  absl::MutexLock lock(&mutex_);
  tasks_.push_back({std::move(work), std::move(done)});
}

void ThreadRunner::Main() {
  while (true) {
    Task task;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &ThreadRunner::HasWork));
      if (stop_) return;
      task = std::move(tasks_.front());
      tasks_.erase(tasks_.begin());
    }
    task.work();
    task.work = nullptr;  // what it captured dies here, off the loop
    loop_->Post(std::move(task.done));
  }
}

void SimLoop::Post(std::function<void()> fn) { RunAt(clock_->SteadyNow(), std::move(fn)); }

TimerId SimLoop::RunAt(absl::Time when, std::function<void()> fn) {
  const TimerId id = next_id_++;
  when = std::max(when, clock_->SteadyNow());
  queue_[{when, id}] = std::move(fn);
  due_[id] = when;
  return id;
}

void SimLoop::Cancel(TimerId id) {
  auto it = due_.find(id);
  if (it == due_.end()) return;
  auto entry = queue_.find({it->second, id});
  const std::function<void()> dropped =
      std::move(entry->second);  // dies last: what it holds may use the loop
  queue_.erase(entry);
  due_.erase(it);
}

bool SimLoop::RunNext() {
  if (queue_.empty() || queue_.begin()->first.first == absl::InfiniteFuture()) return false;
  auto it = queue_.begin();
  clock_->AdvanceTo(it->first.first);
  std::function<void()> fn = std::move(it->second);
  due_.erase(it->first.second);
  queue_.erase(it);
  fn();
  return true;
}

void SimLoop::RunUntil(absl::Time deadline) {
  while (!queue_.empty() && queue_.begin()->first.first <= deadline && RunNext()) {
  }
  if (deadline != absl::InfiniteFuture()) clock_->AdvanceTo(deadline);
}

SimRunner::SimRunner(EventLoop* loop, Cost cost) : loop_(loop), cost_(std::move(cost)) {}

SimRunner::~SimRunner() { *is_alive_ = false; }

void SimRunner::Run(absl::string_view kind, std::function<void()> work, std::function<void()> done) {
  tasks_.push_back({std::string(kind), std::move(work), std::move(done)});
  if (!is_busy_) StartNext();
}

void SimRunner::StartNext() {
  if (tasks_.empty()) return;
  is_busy_ = true;
  Task task = std::move(tasks_.front());
  tasks_.erase(tasks_.begin());
  const absl::Duration cost = cost_(task.kind);
  task.work();
  loop_->RunAfter(cost, [this, alive = is_alive_, done = std::move(task.done)] {
    if (!*alive) return;
    is_busy_ = false;
    done();
    if (*alive && !is_busy_) StartNext();
  });
}

}  // namespace isthmus
