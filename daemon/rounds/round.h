// One open round of one fragment: who is expected, who arrived, and when it closes or aborts (ROUNDS §6).
//
// A pure core: no sockets, threads or clock; events carry the steady time. It holds no frames, only their
// digests. The coordinator's loop owns it (not thread-safe).
#ifndef ISTHMUS_DAEMON_ROUNDS_ROUND_H_
#define ISTHMUS_DAEMON_ROUNDS_ROUND_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/digest.h"
#include "daemon/base/ids.h"

namespace isthmus {

// From the run file.
struct RoundOptions {
  absl::Duration longest_round = absl::Minutes(10);  // the hard deadline, counted from the opening
  int quorum = 0;                                    // 0: ceil(2R/3)
  int minimum = 0;                                   // 0: max(1, ceil(R/2))
};

// Contributions after which the grace starts, and without which nothing commits at the deadline, for a view
// of `view_size` sites; never more than the view.
int QuorumOf(const RoundOptions& options, int view_size);
int MinimumOf(const RoundOptions& options, int view_size);

// Empty when a round may open on a view of this size, else the sentence to wait with. A minimum set in the
// run file counts here too, so that ghosts never make up the number.
std::string ReasonNotToOpen(const RoundOptions& options, int view_size);

enum class RoundVerdict { kWait, kClose, kAbort };

// What closed a round: rules (a), (b), (c).
enum class CloseRule { kNone, kAllArrived, kQuorumAndGrace, kDeadline };

struct RoundDecision {
  RoundVerdict verdict = RoundVerdict::kWait;
  CloseRule rule = CloseRule::kNone;  // with kClose
  std::string reason;                 // why it closed or aborted, or what is being waited for
  std::vector<SiteLife> included;     // with kClose: what arrived, by site; never empty
};

// How a round begins.
struct RoundOpening {
  RoundKey key;
  std::vector<SiteLife> view;           // the frozen members; not empty
  std::optional<absl::Duration> grace;  // nullopt: not learned yet, rule (b) is off
  bool is_last = false;                 // the run's last round: closes by (a) or (c) only
};

class RoundCore {
 public:
  // Rule (b) is off in rounds 1 to 3, in the last round, and without a learned grace.
  RoundCore(const RoundOptions& options, const RoundOpening& opening, absl::Time now);

  // Every event gives the decision after it. kClose or kAbort is given exactly once; whatever comes
  // later changes nothing and gets kWait with "… is already closed".

  // A frame was admitted (AdmitContribution) and is whole. Counts for sites that died or left, too, as
  // long as they belong to the view. A second one of a site changes nothing.
  RoundDecision ContributionArrived(const SiteLife& life, const Digest& frame, absl::Time now);
  // A member died, left or was evicted; `why` is a short clause ("died", "left"). What it already
  // contributed stays in. Not a member: nothing changes.
  RoundDecision SiteGone(const SiteLife& life, absl::string_view why, absl::Time now);
  // To be called at NextDeadline(); early calls are harmless.
  RoundDecision Tick(absl::Time now);

  // End of the grace or hard deadline, whichever is next; InfiniteFuture once decided.
  absl::Time NextDeadline() const;
  // What is being waited for and why: who is missing, quorum x of y, grace or time left.
  std::string WaitingFor(absl::Time now) const;

  const RoundKey& key() const { return opening_.key; }
  const std::vector<SiteLife>& view() const { return opening_.view; }
  bool is_last() const { return opening_.is_last; }
  bool is_decided() const { return is_decided_; }
  int quorum() const { return quorum_; }
  int minimum() const { return minimum_; }
  bool IsMember(const SiteLife& life) const { return seats_.count(life) > 0; }
  // The frame that arrived from a site, or nullopt.
  std::optional<Digest> FrameOf(const SiteLife& life) const;
  // Whether this very frame arrived from any life of the site.
  bool HasFrame(const SiteName& site, const Digest& frame) const;
  std::vector<SiteLife> Arrived() const;  // by site
  std::vector<SiteLife> Missing() const;  // expected and not arrived, by site
  absl::Time opened_at() const { return opened_at_; }
  // InfiniteFuture until reached; the grace counts from here.
  absl::Time quorum_at() const { return quorum_at_; }
  // InfinitePast until one arrived.
  absl::Time last_arrival_at() const { return last_arrival_at_; }

 private:
  struct Seat {
    bool has_arrived = false;
    Digest frame;
    std::string gone;  // why it is no longer expected; empty while it is
  };
  RoundDecision Decide(absl::Time now);
  RoundDecision Close(CloseRule rule, absl::string_view reason);
  RoundDecision Abort(absl::string_view reason);
  bool HasGraceRule() const;
  absl::Time GraceEnd() const;
  std::string GoneText() const;  // "b/1 died, c/2 left": those that are gone without a contribution

  const RoundOptions options_;
  const RoundOpening opening_;
  const int quorum_, minimum_;
  const absl::Time opened_at_, deadline_;
  std::map<SiteLife, Seat> seats_;
  int arrived_ = 0;
  absl::Time quorum_at_ = absl::InfiniteFuture();
  absl::Time last_arrival_at_ = absl::InfinitePast();
  bool is_decided_ = false;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_ROUNDS_ROUND_H_
