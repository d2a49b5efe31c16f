// Commits a worker was told of and has not applied: each waits for its update's bytes and for its turn.
//
// Pure; not thread-safe.
#ifndef ISTHMUS_DAEMON_WORKER_COMMIT_QUEUE_H_
#define ISTHMUS_DAEMON_WORKER_COMMIT_QUEUE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "protos/records.pb.h"

namespace isthmus {

class CommitQueue {
 public:
  // Told of a commit. One at or before `anchor_round`, or known already, is ignored; true when it is news.
  bool Add(const CommitRecord& record, int64_t anchor_round);

  // Rounds whose bytes nobody is fetching yet; they are taken as being fetched from now on.
  std::vector<int64_t> TakeMissing();

  // The bytes came, or the fetch failed and may be tried again.
  void Fetched(int64_t round, std::string update);
  void FetchFailed(int64_t round);

  struct Ready {
    CommitRecord record;
    std::string update;
  };
  // Moves out the commit that follows `anchor_round`, when its bytes are here.
  bool TakeNext(int64_t anchor_round, Ready* ready);

  // Rounds up to `anchor_round` are no news any more.
  void DropUpTo(int64_t anchor_round);
  void Clear() { commits_.clear(); }

  bool empty() const { return commits_.empty(); }
  // The newest round told of, or −1.
  int64_t newest() const { return commits_.empty() ? -1 : commits_.rbegin()->first; }
  const CommitRecord* Find(int64_t round) const;
  // The commit waiting here that included this frame of the site, or null.
  const CommitRecord* FindFrame(const std::string& site, const std::string& frame_digest) const;

 private:
  struct Entry {
    CommitRecord record;
    bool is_fetching = false, has_bytes = false;
    std::string update;
  };
  std::map<int64_t, Entry> commits_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_WORKER_COMMIT_QUEUE_H_
