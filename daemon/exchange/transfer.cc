#include "daemon/exchange/transfer.h"

#include "absl/strings/str_cat.h"

namespace isthmus {

Transfer::~Transfer() {
  *is_alive_ = false;
  loop_->Cancel(deadline_timer_);
}

void Transfer::Start() {
  deadline_timer_ = loop_->RunAt(deadline_, [this, alive = is_alive_] {
    if (!*alive) return;
    Abandon();
    EndAttempts();
    Fail(absl::DeadlineExceededError(
        absl::StrCat(Describe(), ": not done by its deadline",
                     last_break_.ok() ? "" : "; last: ", std::string(last_break_.message()))));
  });
  BeginAttempt();
}

void Transfer::Break(const absl::Status& why) {
  Abandon();
  last_break_ = why;
  EndAttempts();
  loop_->RunAfter(backoff_.Next(), InAttempt([this] { BeginAttempt(); }));
}

}  // namespace isthmus
