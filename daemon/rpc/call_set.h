// The calls of one side that gRPC may still call back, so that nobody dies under them.
//
// gRPC owns the time between a call's start and its OnDone; whoever made the call must outlive that. Each
// side keeps its calls here and waits for the set to be empty before it goes.
#ifndef ISTHMUS_DAEMON_RPC_CALL_SET_H_
#define ISTHMUS_DAEMON_RPC_CALL_SET_H_

#include <functional>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"

namespace isthmus {

class Call {
 public:
  virtual ~Call() = default;
  // Ends as soon as may be, OnDone follows from gRPC. Any thread; more than once is fine.
  virtual void Abort(const absl::Status& why) = 0;
  // Ends in order: what is queued goes out first. Any thread.
  virtual void Wind(const absl::Status& why) { Abort(why); }
};

// Thread-safe.
class CallSet {
 public:
  // Keeps the call alive until Remove. After WindAll a new call is wound up at once.
  void Add(std::shared_ptr<Call> call);
  // From OnDone, as the last thing. `bury` is given the set's share of the call before AwaitEmpty can return:
  // a client's call holds its channel, and a channel must not die in gRPC's own threads, which its end may
  // join.
  void Remove(const Call* call, const std::function<void(std::shared_ptr<Call>)>& bury);
  void Remove(const Call* call) {
    Remove(call, [](std::shared_ptr<Call>) {});
  }

  void WindAll(const absl::Status& why);
  void AbortAll(const absl::Status& why);
  // Waits until no call is left or `clock` reaches `deadline`. Returns whether none is left.
  bool AwaitEmpty(Clock* clock, absl::Time deadline);

 private:
  std::map<const Call*, std::shared_ptr<Call>> Copy() const;
  bool IsEmpty() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return calls_.empty(); }

  mutable absl::Mutex mutex_;
  // Shared with whoever drives the call; the set's share is what keeps it alive for gRPC.
  std::map<const Call*, std::shared_ptr<Call>> calls_ ABSL_GUARDED_BY(mutex_);
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);  // not OK: no more calls
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_RPC_CALL_SET_H_
