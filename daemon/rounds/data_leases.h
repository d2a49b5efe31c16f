// Data leases: which site may train on which sequences (ROUNDS §3).
//
// A data pass is a seeded permutation of sequence indices; this core hands out ranges of *positions* in it
// and never sees data or the permutation. Pure and deterministic: the same calls in the same order give the
// same leases, on any machine. Owned by the coordinator's loop (not thread-safe).
//
// The life of a position: leased → trained (named by a contribution) → committed. A frame that was not
// committed leaves its ranges *carried* by its site: the site's next frame speaks for them too. What is
// forfeited, or carried, in an uncommitted frame or unused when the site is gone, is given out again, before
// anything new: at least once. What was trained twice is counted.
#ifndef ISTHMUS_DAEMON_ROUNDS_DATA_LEASES_H_
#define ISTHMUS_DAEMON_ROUNDS_DATA_LEASES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/base/digest.h"
#include "daemon/base/ids.h"
#include "daemon/rounds/range_set.h"

namespace isthmus {

enum class DataMode { kShared, kPerSite };

struct DataLease {
  SiteLife life;
  int64_t number = 0;  // from 1 in each life
  DataRange range;
};

// A part of a lease, as contributions list it.
struct TrainedRange {
  int64_t lease = 0;  // its number
  int64_t begin = 0, end = 0;
};

struct LeaseCounts {
  int64_t trained_once = 0;   // positions trained at least once, over all passes
  int64_t trained_again = 0;  // trainings beyond the first of a position
  int64_t outstanding = 0;    // leased and not yet reported trained
  int64_t waiting = 0;        // to be given out again
  int64_t pass = 0;           // SHARED: the pass now being given out; PER_SITE: the least advanced site's
};

// One row of the whole state, for the ledger. Fields not named for a kind are 0 or empty.
struct LeaseRecord {
  enum class Kind {
    // life.name (PER_SITE) · begin: cursor, end: sequences, pass: being given out · number: trained_again
    kSpace = 1,
    kReturned = 2,   // life.name (PER_SITE) · pass, begin, end: to be given out again
    kCovered = 3,    // life.name (PER_SITE) · pass, begin, end: trained at least once
    kGone = 4,       // life: this and earlier ones of its name are over
    kLastLease = 5,  // life · number: of the last lease given to it
    kUnused = 6,     // life, number · pass, begin, end: leased, not yet reported trained
    kTrained = 7,    // life · pass, begin, end · frame: spoken for by it, zero when carried
    kFrame = 8,      // life · frame: pending · number: 1 when its site cannot carry it any more
  };
  Kind kind = Kind::kSpace;
  SiteLife life;
  int64_t number = 0, pass = 0, begin = 0, end = 0;
  Digest frame;
};

class DataLeases {
 public:
  // SHARED: `sequences` > 0 are common to all sites. PER_SITE: 0 here, see AddSite.
  DataLeases(DataMode mode, int64_t sequences);

  // PER_SITE: a site's own sequences; known by name, so a returner goes on where it was. INVALID_ARGUMENT:
  // not positive, or another number than before. SHARED: must be the run's number.
  absl::Status AddSite(const SiteName& name, int64_t sequences);

  // The next lease: at most `wanted` (≥ 1) positions, fewer at the end of a pass or of a range given out
  // again; never empty. FAILED_PRECONDITION: the life is gone, or PER_SITE and unknown. RESOURCE_EXHAUSTED:
  // it holds 64 leases with unused positions.
  absl::StatusOr<DataLease> Next(const SiteLife& life, int64_t wanted);

  // A lease given before, for a request whose answer got lost: its first unused range; nullopt when unknown
  // or used up.
  std::optional<DataLease> Find(const SiteLife& life, int64_t number) const;

  // A contribution arrived that speaks for these ranges and all its site carried. Sent twice: OK, counted
  // once. FAILED_PRECONDITION: the life is unknown or gone. INVALID_ARGUMENT: no frame digest, or a range
  // that is empty, outside its lease, or reported before. Nothing changes unless OK.
  absl::Status Contributed(const SiteLife& life, const Digest& frame, absl::Span<const TrainedRange> ranges);
  // The outcome of a contribution. Dropped (late, refused, aborted round): its ranges are carried again, or
  // given out again if the site was reset or is gone. Unknown frames are ignored.
  void Committed(const SiteName& site, const Digest& frame);
  void Dropped(const SiteName& site, const Digest& frame);

  // A reset: the site lost all it carried and what it trained since its last encode (`ranges`; what of them
  // is not unused is ignored). They are given out again; those in a pending frame only if it is dropped.
  // Returns the positions given back now.
  int64_t Forfeited(const SiteLife& life, absl::Span<const TrainedRange> ranges);

  // The life is over: its unused and carried positions are given out again; those in a pending frame only if
  // it is dropped. Idempotent. Returns the positions given back now.
  int64_t SiteGone(const SiteLife& life);

  LeaseCounts Counts() const;
  // Unused parts of all leases, by site and number: pairwise disjoint within a space.
  std::vector<DataLease> Outstanding() const;

  // The whole state, in a fixed order, and back. Import: DATA_LOSS for records that contradict each other.
  std::vector<LeaseRecord> Export() const;
  static absl::StatusOr<DataLeases> Import(DataMode mode, absl::Span<const LeaseRecord> records);

 private:
  struct Space {
    int64_t size = 0, pass = 0, cursor = 0, trained_again = 0;
    RangeSet returned, covered;
  };
  struct PendingFrame {
    RangeSet ranges;
    bool is_orphaned = false;  // its site cannot carry it any more
  };
  struct Holder {
    int64_t last_number = 0;
    std::map<int64_t, RangeSet> unused;  // by lease number; never empty sets
    RangeSet carried;
    std::map<Digest, PendingFrame> pending;
  };

  const SiteName& SpaceName(const SiteName& name) const;
  bool IsGone(const SiteLife& life) const;
  void MarkTrained(Space* space, const DataRange& r);
  int64_t GiveBack(const SiteName& name, RangeSet* from);
  void Settle(const SiteName& site, const Digest& frame, bool is_committed);
  absl::Status ImportRecord(const LeaseRecord& record);
  absl::Status CheckDisjoint() const;

  DataMode mode_;
  std::map<SiteName, Space> spaces_;      // SHARED: one, under ""
  std::map<SiteName, Incarnation> gone_;  // the last life known to be over
  std::map<SiteLife, Holder> holders_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_ROUNDS_DATA_LEASES_H_
