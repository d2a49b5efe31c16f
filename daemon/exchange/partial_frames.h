// Frames on their way up, held so that an upload which broke goes on where it stopped.
//
// Both hubs (gRPC and simulated) keep one. Memory is bounded by `capacity_bytes` whatever senders declare:
// space is taken as pieces arrive, never by a declared length. Not thread-safe: owned by the hub's loop.
#ifndef ISTHMUS_DAEMON_EXCHANGE_PARTIAL_FRAMES_H_
#define ISTHMUS_DAEMON_EXCHANGE_PARTIAL_FRAMES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/exchange/transport.h"

namespace isthmus {

// The most of a frame, update or snapshot that travels in one message.
inline constexpr int64_t kPieceBytes = 256 * 1024;

class PartialFrames {
 public:
  // An upload that may begin.
  struct Offered {
    int64_t held_bytes = 0;  // from an earlier attempt: go on from there
    int64_t attempt = 0;     // for Release
  };

  explicit PartialFrames(int64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  // Begins an upload or goes on with one. Frames of earlier lives of the site are
  // dropped. INVALID_ARGUMENT: no frame can have this header, or it is larger than the capacity.
  // RESOURCE_EXHAUSTED: too many are on their way.
  absl::StatusOr<Offered> Offer(const ContributionHeader& header);

  // The attempt that made an Offer is over: what it left may be dropped when space is wanted. However late it
  // comes, newer attempts at the same frame do not feel it.
  void Release(const ContributionHeader& header, int64_t attempt);

  // Appends a piece. Bytes from before `offset` that are held already are taken as such. INVALID_ARGUMENT:
  // past the declared end, or a gap. RESOURCE_EXHAUSTED: the capacity is used up by frames in progress.
  // NOT_FOUND: nothing was offered, or it was dropped for want of space: offer again.
  absl::Status Append(const ContributionHeader& header, int64_t offset, absl::string_view piece);

  // Bytes held of this frame; 0 when none.
  int64_t HeldOf(const ContributionHeader& header) const;

  // Hands over a whole frame and forgets it. DATA_LOSS: its digest is not the declared one (all of it is
  // dropped; send again from the start). FAILED_PRECONDITION: not all of it is here.
  absl::StatusOr<SharedBytes> Take(const ContributionHeader& header);

  int64_t held_bytes() const { return held_bytes_; }

 private:
  struct Key {
    std::string site;
    int64_t incarnation = 0;
    std::string digest;
    bool operator<(const Key& o) const {
      return std::tie(site, incarnation, digest) < std::tie(o.site, o.incarnation, o.digest);
    }
  };
  struct Partial {
    std::string bytes;
    int64_t declared_bytes = 0;
    int64_t last_use = 0;
    std::set<int64_t> attempts;  // under way; only frames without one are dropped for want of space
  };
  static Key KeyOf(const ContributionHeader& header);
  void Erase(std::map<Key, Partial>::iterator it);
  // Drops the frame without an attempt that was unused longest. False: there is none.
  bool EraseOldest();

  const int64_t capacity_bytes_;
  int64_t held_bytes_ = 0;
  int64_t uses_ = 0;
  int64_t attempts_ = 0;
  std::map<Key, Partial> partials_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_EXCHANGE_PARTIAL_FRAMES_H_
