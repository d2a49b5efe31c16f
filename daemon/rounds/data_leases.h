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
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/base/digest.h"
#include "daemon/base/ids.h"

namespace isthmus {

enum class DataMode { kShared, kPerSite };

// Positions [begin, end) of one data pass.
struct DataRange {
  int64_t pass = 0;  // from 0
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
  bool operator==(const DataRange& o) const { return pass == o.pass && begin == o.begin && end == o.end; }
  bool operator<(const DataRange& o) const {
    return std::tie(pass, begin, end) < std::tie(o.pass, o.begin, o.end);
  }
};

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
    kSpace =
        1,  // life.name (PER_SITE) · begin: cursor, end: size, pass: being given out · number: trained_again
    kReturned = 2,   // life.name (PER_SITE) · pass, begin, end: to be given out again
    kCovered = 3,    // life.name (PER_SITE) · pass, begin, end: trained at least once
    kLastLease = 4,  // life · number: the last one given to it; begin: 1 when it is gone
    kUnused = 5,     // life, number · pass, begin, end: leased, not yet trained
    kTrained = 6,    // life, number · pass, begin, end · frame: spoken for by it, zero when carried
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

  // A contribution arrived that speaks for these ranges and all its site carried. Sent twice: OK, once
  // counted. INVALID_ARGUMENT, with nothing changed: a range outside its lease, empty, or trained before.
  absl::Status Contributed(const SiteLife& life, const Digest& frame, absl::Span<const TrainedRange> ranges);
  // The outcome of a contribution. Dropped (late, refused, aborted round): its ranges are carried again.
  // Unknown frames are ignored.
  void Committed(const Digest& frame);
  void Dropped(const Digest& frame);

  // The site lost what it learned from these (a reset): they are given out again, whether reported trained
  // before (and not committed) or now for the first time. Positions that are neither are ignored.
  void Forfeited(const SiteLife& life, absl::Span<const TrainedRange> ranges);
  // All the site carries and has in pending frames, too: the process lost its state. Returns the positions.
  int64_t ForfeitedAll(const SiteLife& life);

  // The life is over: its unused and carried positions are given out again at once, those in frames still
  // pending when these are dropped. Idempotent. Returns the positions given back now.
  int64_t SiteGone(const SiteLife& life);

  LeaseCounts Counts() const;
  // Unused parts of all leases, by site and number: pairwise disjoint within a space.
  std::vector<DataLease> Outstanding() const;

  // The whole state, in a fixed order, and back. Import: DATA_LOSS for records that contradict each other.
  std::vector<LeaseRecord> Export() const;
  static absl::StatusOr<DataLeases> Import(DataMode mode, absl::Span<const LeaseRecord> records);

 private:
  // Disjoint ranges with merged neighbours, in order: begin → end per pass.
  class RangeSet {
   public:
    void Add(const DataRange& r);
    // Removes what lies in `r`; returns the removed parts.
    std::vector<DataRange> Take(const DataRange& r);
    bool Contains(const DataRange& r) const;
    int64_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    std::vector<DataRange> All() const;
    DataRange First() const;

   private:
    std::map<std::pair<int64_t, int64_t>, int64_t> ends_;  // (pass, begin) → end
    int64_t size_ = 0;
  };
  struct Space {
    int64_t size = 0, pass = 0, cursor = 0, trained_again = 0;
    RangeSet returned, covered;
  };
  struct Lease {
    DataRange range;  // as given
    RangeSet unused;
  };
  struct Holder {
    int64_t last_number = 0;
    bool is_gone = false;
    std::map<int64_t, Lease> leases;     // those with something unused or trained and not committed
    std::map<Digest, RangeSet> pending;  // by frame; the zero digest: carried
  };

  Space* SpaceOf(const SiteName& name);
  void MarkTrained(Space* space, const DataRange& r);

  DataMode mode_;
  std::map<SiteName, Space> spaces_;  // SHARED: one, under ""
  std::map<SiteLife, Holder> holders_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_ROUNDS_DATA_LEASES_H_
