#include "daemon/worker/lease_book.h"

#include <algorithm>

namespace isthmus {

void LeaseBook::Granted(int64_t number, int64_t pass, int64_t begin, int64_t end) {
  if (number != last_number_ + 1 || begin >= end) return;
  last_number_ = number;
  leases_.push_back({number, pass, begin, end});
}

int64_t LeaseBook::left() const {
  int64_t n = 0;
  for (const Lease& l : leases_) n += l.end - l.next;
  return n;
}

std::vector<LeasePosition> LeaseBook::Take(int64_t count) {
  std::vector<LeasePosition> out;
  if (left() < count) return out;
  while (count > 0) {
    Lease& l = leases_.front();
    const int64_t n = std::min(count, l.end - l.next);
    for (int64_t i = 0; i < n; ++i) out.push_back({l.pass, l.next + i});
    if (!trained_.empty() && trained_.back().lease == l.number && trained_.back().end == l.next) {
      trained_.back().end += n;
    } else {
      trained_.push_back({l.number, l.next, l.next + n});
    }
    l.next += n;
    count -= n;
    if (l.next == l.end) leases_.pop_front();
  }
  return out;
}

std::vector<LeaseSpan> LeaseBook::TakeTrained() {
  std::vector<LeaseSpan> out;
  out.swap(trained_);
  return out;
}

void LeaseBook::PutBack(const std::vector<LeaseSpan>& spans) {
  trained_.insert(trained_.begin(), spans.begin(), spans.end());
}

std::vector<LeasePosition> LeaseBook::Left() const {
  std::vector<LeasePosition> out;
  for (const Lease& l : leases_) {
    for (int64_t at = l.next; at < l.end; ++at) out.push_back({l.pass, at});
  }
  return out;
}

void LeaseBook::Restart() {
  last_number_ = 0;
  leases_.clear();
  trained_.clear();
}

}  // namespace isthmus
