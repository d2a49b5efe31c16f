// A worker's own side of its data leases: what is left to train on, and what was trained since the last
// encode.
//
// Pure; not thread-safe.
#ifndef ISTHMUS_DAEMON_WORKER_LEASE_BOOK_H_
#define ISTHMUS_DAEMON_WORKER_LEASE_BOOK_H_

#include <cstdint>
#include <deque>
#include <vector>

namespace isthmus {

// Positions [begin, end) of lease `lease`.
struct LeaseSpan {
  int64_t lease = 0;
  int64_t begin = 0, end = 0;
  bool operator==(const LeaseSpan& o) const { return lease == o.lease && begin == o.begin && end == o.end; }
};

// One position of a data pass's permutation.
struct LeasePosition {
  int64_t pass = 0;
  int64_t position = 0;
};

class LeaseBook {
 public:
  // A lease was granted; any number but next_number() is a repetition and ignored.
  void Granted(int64_t number, int64_t pass, int64_t begin, int64_t end);

  // Positions not yet trained.
  int64_t left() const;

  // The number to ask for next, from 1.
  int64_t next_number() const { return last_number_ + 1; }

  // Takes the next `count` positions; empty, with nothing taken, when fewer are left.
  std::vector<LeasePosition> Take(int64_t count);

  // What was taken since the last call, merged; for the contribution being encoded.
  std::vector<LeaseSpan> TakeTrained();

  // The contribution that named these was never counted: the next one names them again.
  void PutBack(const std::vector<LeaseSpan>& spans);

  // What is left of the leases, for tests.
  std::vector<LeasePosition> Left() const;

  // A new life: old leases are not ours any more. What was trained and not yet encoded is forgotten too,
  // since lease numbers begin again.
  void Restart();

 private:
  struct Lease {
    int64_t number = 0, pass = 0, next = 0, end = 0;
  };
  int64_t last_number_ = 0;
  std::deque<Lease> leases_;
  std::vector<LeaseSpan> trained_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_WORKER_LEASE_BOOK_H_
