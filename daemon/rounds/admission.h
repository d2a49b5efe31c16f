// Which contribution counts in the round that is open: the rule for late frames (ROUNDS §5).
//
// Pure. A base is known by the state digest of the anchor that the frame was taken against.
#ifndef ISTHMUS_DAEMON_ROUNDS_ADMISSION_H_
#define ISTHMUS_DAEMON_ROUNDS_ADMISSION_H_

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/base/digest.h"
#include "daemon/base/ids.h"
#include "daemon/rounds/round.h"

namespace isthmus {

// A base this many commits behind the newest anchor still counts.
constexpr int kOldestBaseRounds = 4;

// A frame that a commit included, by the site it came from. Two sites may send the same bytes, and one site
// may again later (all-zero frames), so a frame is known by site, digest, and its base being older than the
// commit.
struct CountedFrame {
  SiteName site;
  Digest frame;

  bool operator==(const CountedFrame& o) const { return frame == o.frame && site == o.site; }
};

// The last committed states of one fragment and the frames in them; rebuilt from the ledger by calling
// Committed in order.
class CommittedWindow {
 public:
  // The state the run (or the kept part of the ledger) starts from; forgets all else.
  void Start(RoundId round, const Digest& state);
  // A round was committed: the anchor's digest after it, and the frames it included.
  void Committed(RoundId round, const Digest& state_after, absl::Span<const CountedFrame> frames);

  // How many commits ago `state` was the anchor (0: it is now); nullopt when it is not remembered.
  std::optional<int> AgeOf(const Digest& state) const;
  // The round that included this frame taken against `base`, as far as a base that still counts could have
  // sent it; nullopt when it did not count yet.
  std::optional<RoundId> RoundOfFrame(const CountedFrame& frame, const Digest& base) const;
  // The newest state's round; -1 before Start.
  RoundId newest_round() const { return states_.empty() ? -1 : states_.back().round; }
  // The round of the oldest state remembered.
  RoundId oldest_round() const { return states_.empty() ? -1 : states_.front().round; }

 private:
  struct State {
    RoundId round = 0;
    Digest digest;
    std::vector<CountedFrame> frames;
  };
  std::deque<State> states_;  // at most 64, oldest first; frames only in the last kOldestBaseRounds
};

// What a contribution says about itself.
struct ContributionClaim {
  SiteLife life;
  RoundKey key;  // the round it was made for
  Digest base;   // state digest of the anchor it was taken against
  Digest frame;  // of the frame's bytes
};

enum class Admission {
  kAdmit,      // take the bytes; then RoundCore::ContributionArrived
  kDuplicate,  // already counted, in the open round or a committed one: answer as if it were new
  kDrop,    // late for the last round, which takes only its own: it never counts, what it held stays carried
            // for the sender's next frame, and nobody did wrong
  kRefuse,  // `status` says why and what the sender does
};

struct AdmissionAnswer {
  Admission admission = Admission::kRefuse;
  // OK unless refused. Then:
  //   UNAVAILABLE          no round is open: send again
  //   FAILED_PRECONDITION  not in the open round's view, or its one frame of this round is another: wait for
  //                        the outcome, get the view, contribute to the next round
  //   OUT_OF_RANGE         base too old: the frame is dropped, nothing is lost
  //   DATA_LOSS            base was never committed: the sender's anchor deviates, it catches up
  //   INVALID_ARGUMENT     round in the future, wrong fragment, no digest
  absl::Status status;
  bool is_late = false;    // made for an earlier round, counts in this one
  RoundId counted_in = 0;  // the round it counts in, or with kDuplicate was counted in
  std::string reason;      // a sentence naming site and round
};

// `open` is null between rounds.
AdmissionAnswer AdmitContribution(const ContributionClaim& claim, const RoundCore* open,
                                  const CommittedWindow& window);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_ROUNDS_ADMISSION_H_
