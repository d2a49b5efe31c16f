// What the coordinator counts for each site, over all its lives. Pure; not thread-safe.
#ifndef ISTHMUS_DAEMON_COORDINATOR_SITE_BOOK_H_
#define ISTHMUS_DAEMON_COORDINATOR_SITE_BOOK_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "protos/control.pb.h"
#include "protos/status.pb.h"

namespace isthmus {

// Figures a site says of itself, before they are added up: what is no number becomes 0, and whole numbers are
// held between −1 and 2^48.
void MakePlausible(google::protobuf::Message* figures);

struct SiteEntry {
  SiteProgress progress;  // newest, of the present process
  bool has_progress = false;
  absl::Time progress_at;                     // steady
  absl::Time lost_at = absl::InfinitePast();  // its connection broke, steady
  int64_t tokens_per_step = 0;
  int64_t steps_assigned = 0;  // H_r
  int64_t rounds_included = 0;
  int64_t rounds_missed = 0;
  std::string last_miss_reason;
  int64_t contributed_steps = 0;
  int64_t steps_at_last_commit =
      0;  // inner steps of the present process at the encode of its last committed frame
  double forfeited_square_sum = 0;
  double decayed_at_last_commit = 0;  // of the process whose frame was committed last, all its encodes
  int64_t forfeited_steps = 0;
  int64_t first_incarnation = 0;  // of the present process; frames of lives before it are another's
  bool is_forfeit_booked =
      false;  // of the present process: it said so itself, or it was booked when it was gone
  double computed_before = 0, waited_before = 0;  // seconds, as of the last commit
  bool has_earlier_seconds = false;               // what it tells first is not of the next commit alone
  absl::Duration evaluation_time;                 // of its last evaluation
  std::string state_before;                       // as of a restart: left, dead, away; empty: not known then
  bool is_resyncing = false;                      // told to; no second time until it caught up
  int resyncs_in_vain = 0;                        // in a row, each ending on a wrong digest
  int64_t lease_in_flight = 0;                    // number of the data lease being made durable; 0: none
  bool has_lease_trouble = false;                 // was refused one, and it was logged
};

class SiteBook {
 public:
  SiteEntry& at(const SiteName& site) { return sites_[site]; }
  const SiteEntry* find(const SiteName& site) const {
    auto it = sites_.find(site);
    return it == sites_.end() ? nullptr : &it->second;
  }
  const std::map<SiteName, SiteEntry>& all() const { return sites_; }

  void ProgressReported(const SiteName& site, const SiteProgress& progress, absl::Time now);

  // A new process took the name, from this incarnation on: what the old one had not contributed is forfeited.
  // `spoken_for`: inner steps of the old process at the encode of a frame that waits for its outcome.
  // Returns the steps booked.
  int64_t NewProcess(const SiteName& site, int64_t incarnation, int64_t spoken_for);
  // The process is known to be gone for good, with what it carried. Returns the steps booked now: those it
  // reported and did not contribute, and those it must have done, at its speed, until its connection broke.
  int64_t ProcessGone(const SiteName& site, int64_t spoken_for = 0);
  // Steps of a process that is gone, whose frame then did not count.
  void FrameLost(const SiteName& site, int64_t steps) { sites_[site].forfeited_steps += steps; }
  void Forfeited(const SiteName& site, const isthmus::Forfeited& f);

  // `process_steps`: inner steps of that life's process at the encode.
  void Included(const SiteLife& life, int64_t steps, int64_t process_steps);
  // What decay took from what the site carried: `told` by a committed frame, in all encodes of its process.
  void Decayed(const SiteName& site, double told);
  void Missed(const SiteName& site, const std::string& reason);

  // The processes known so far go on: their seconds count from what they tell next (they tell sums since they
  // began). For a coordinator that was away.
  void CountSecondsFromNow();
  // Seconds all sites computed and waited since the last call.
  void TakeRoundSeconds(double* computed, double* waited);

 private:
  std::map<SiteName, SiteEntry> sites_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_COORDINATOR_SITE_BOOK_H_
