// What uploads and fetches of every transport share: a deadline, attempts that are told apart, and backing
// off between them.
//
// On the loop's thread. Destroyed, it calls nothing any more.
#ifndef ISTHMUS_DAEMON_EXCHANGE_TRANSFER_H_
#define ISTHMUS_DAEMON_EXCHANGE_TRANSFER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/base/event_loop.h"
#include "daemon/exchange/retry_pause.h"

namespace isthmus {

class Transfer {
 public:
  // `loop` must outlive the transfer.
  Transfer(EventLoop* loop, absl::Time deadline) : loop_(loop), deadline_(deadline) {}
  virtual ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Begins; the outcome comes through the subclass's callback, never from within this call.
  void Start();

 protected:
  // Starts over, from what is across already.
  virtual void BeginAttempt() = 0;
  // It is over without success.
  virtual void Fail(const absl::Status& why) = 0;
  // "upload of site 'alpha' for round 7".
  virtual std::string Describe() const = 0;
  // The attempt is given up.
  virtual void Abandon() {}

  // The attempt ended in a way worth another one: after a while, begins it.
  void Break(const absl::Status& why);
  // What was made InAttempt before does nothing from now on.
  void EndAttempts() { ++attempt_; }
  void ProgressMade() { backoff_.Reset(); }

  // `fn`, doing nothing once the attempt it was wrapped in is over.
  template <typename F>
  auto InAttempt(F fn) const {
    return [this, alive = is_alive_, attempt = attempt_, fn = std::move(fn)](auto&&... arguments) {
      if (*alive && attempt == attempt_) fn(std::forward<decltype(arguments)>(arguments)...);
    };
  }
  // False once this transfer is gone, which a listener called from here may bring about.
  std::shared_ptr<const bool> alive_flag() const { return is_alive_; }

  EventLoop* loop() const { return loop_; }
  absl::Time deadline() const { return deadline_; }
  int64_t attempt() const { return attempt_; }

 private:
  EventLoop* const loop_;
  const absl::Time deadline_;
  TimerId deadline_timer_ = 0;
  int64_t attempt_ = 0;
  RetryPause backoff_;
  absl::Status last_break_;
  // Shared with callbacks in the loop's queue, which may run after the transfer is gone.
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_EXCHANGE_TRANSFER_H_
