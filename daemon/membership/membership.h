// Who is in the run: joins, silence, suspicion, death, and the view each round is frozen on.
//
// A pure core: every event is handed the steady time and gives back what changed, with a sentence each.
// It sends nothing, waits for nothing and asks no clock; the coordinator's loop owns it (not thread-safe).
// Round-trip times, tickets and addresses are not here.
#ifndef ISTHMUS_DAEMON_MEMBERSHIP_MEMBERSHIP_H_
#define ISTHMUS_DAEMON_MEMBERSHIP_MEMBERSHIP_H_

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/ids.h"

namespace isthmus {

struct MembershipOptions {
  absl::Duration heartbeat_interval =
      absl::Seconds(1);                               // what workers are told; silence is judged against it
  absl::Duration suspicion_floor = absl::Seconds(3);  // no less; nor less than 3 intervals
  double deviations = 4;                              // learned interval: mean + this many deviations
  int learning_window = 16;                           // of this many heartbeat gaps
  int max_sites = 1024;                               // the most living sites (the sums are exact up to here)
};

// What a site is to the run. A suspect goes back to what it was when it speaks.
enum class SiteState {
  kJoining,   // admitted, catching up
  kReady,     // caught up, waits for the next round boundary
  kActive,    // member of the frozen view
  kSuspect,   // silent for longer than it should be
  kDraining,  // asked to leave; finishes the round
  kDead,      // silent for too long, or evicted
  kLeft,      // gone on purpose
};
// One lower-case word: "joining", "ready", …
absl::string_view SiteStateName(SiteState state);

// Agreed, numbered list of sites: what a round is frozen on.
struct View {
  ViewId id = 0;                  // 0 until the first site is in; grows only when the set changes
  std::vector<SiteLife> members;  // by name

  bool Contains(const SiteLife& life) const;
};

// What an event changed. One event may give several.
enum class MemberChange {
  kAdmitted,   // may catch up now
  kReady,      // caught up
  kJoined,     // in the view from this boundary on
  kSuspected,  //
  kRefuted,    // spoke while suspect
  kDraining,   //
  kLeft,       // gone on purpose: no longer expected
  kDied,       // silence or replacement: no longer expected
  kEvicted,    // removed by decision: dead, and to be told so
  kFenced,     // an older or dead life spoke: not listened to, to be told so (FAILED_PRECONDITION)
};
// One lower-case word: "admitted", "joined", …
absl::string_view MemberChangeName(MemberChange change);

struct MemberEffect {
  MemberChange change;
  SiteLife life;
  std::string reason;  // a whole sentence naming the site, for log and status
};
using MemberEffects = std::vector<MemberEffect>;

struct JoinAnswer {
  // OK: admitted as joining.
  // ALREADY_EXISTS: a living site holds the name and is connected.
  // UNAVAILABLE: the holder is silent or disconnected and not yet given up; ask again at `retry_at`.
  // RESOURCE_EXHAUSTED: max_sites are in. INVALID_ARGUMENT: empty name, incarnation not above the last one's.
  absl::Status status;
  absl::Time retry_at = absl::InfiniteFuture();
  MemberEffects effects;
};

// One line of the status table.
struct MemberStatus {
  SiteLife life;
  SiteState state = SiteState::kJoining;
  bool is_connected = false;
  absl::Duration in_state;         // since the last change of state
  absl::Duration silence;          // since it was last heard
  absl::Duration suspected_after;  // silence that makes it suspect as things stand; death at twice that
  std::string reason;              // of its last change
};

class Membership {
 public:
  explicit Membership(MembershipOptions options = {});

  // Asks to take part as (name, incarnation); the incarnation comes from the ledger and must be new.
  // A dead or departed holder of the name is replaced, as is one that is both suspect and disconnected
  // (kDied for the old life, then kAdmitted). The newcomer counts as connected.
  JoinAnswer JoinRequested(const SiteName& name, Incarnation incarnation, absl::Time now);

  // After a coordinator restart, before anything else: the members the ledger knows, active again and
  // in the view with its old id. None is suspected before now + grace; each is heard as of now + grace
  // until it really speaks.
  void Restore(const View& view, absl::Duration grace, absl::Time now);

  // A heartbeat: proof of life, and a sample of the learned interval.
  MemberEffects HeartbeatReceived(const SiteLife& life, absl::Time now);
  // Any other message: proof of life only.
  MemberEffects Heard(const SiteLife& life, absl::Time now);

  // The heartbeat connection of a life broke or is back. Broken halves both limits; a draining site
  // whose connection breaks has left.
  MemberEffects ConnectionLost(const SiteLife& life, absl::Time now);
  MemberEffects ConnectionRestored(const SiteLife& life, absl::Time now);

  // Caught up with the anchor: joins at the next boundary.
  MemberEffects CaughtUp(const SiteLife& life, absl::Time now);

  // Drains: an active site finishes its round and leaves at the boundary, any other one leaves at once.
  MemberEffects LeaveRequested(const SiteLife& life, absl::Time now);
  // Gone now, on purpose, without finishing the round.
  MemberEffects Departed(const SiteLife& life, absl::Time now);
  // Removed by decision; `why` completes "site was evicted: ".
  MemberEffects Evict(const SiteLife& life, absl::string_view why, absl::Time now);

  // The owner was frozen for `absence` until now and heard nobody: that is no silence of theirs. To be told
  // before any event of the time after.
  void NobodyListened(absl::Duration absence, absl::Time now);

  // Finds suspects and deaths. To be called at NextDeadline(); early calls are harmless.
  MemberEffects Tick(absl::Time now);
  // When silence next changes something; InfiniteFuture when nothing can.
  absl::Time NextDeadline() const;

  // A round boundary: ready sites join, draining ones leave, and the view is frozen until the next call.
  MemberEffects FreezeView(absl::Time now);
  // As of the last boundary; members that died or left since are still listed.
  const View& view() const { return view_; }

  // OK: messages of this life count. FAILED_PRECONDITION: unknown, older, dead or left; the message says
  // which.
  absl::Status CheckLife(const SiteLife& life) const;
  // The living sites (connected or not, suspect or not) in any state from joining to draining.
  int living() const;
  // The present holder of a name, dead or alive; incarnation 0 when there never was one.
  SiteLife Holder(const SiteName& name) const;
  // All known sites by name; the dead and departed stay until their name is reused or 64 boundaries passed.
  std::vector<MemberStatus> Snapshot(absl::Time now) const;

 private:
  struct Member {
    Incarnation incarnation = 0;
    SiteState phase = SiteState::kJoining;  // never kSuspect: that is is_suspect
    bool is_suspect = false;
    bool is_connected = true;
    absl::Time since;       // of the last change of state
    absl::Time last_heard;  // by anything
    absl::Time last_beat;   // InfinitePast: the next heartbeat starts a new sample
    std::deque<absl::Duration> gaps;
    int boundaries_gone = 0;  // boundaries passed since it died or left
    std::string reason;
  };
  using Members = std::map<SiteName, Member>;

  static bool IsAlive(const Member& m);
  absl::Duration SuspectedAfter(const Member& m) const;
  // OK, or the refusal of a join.
  absl::Status CheckNameIsFree(const SiteName& name, absl::Time now, absl::Time* retry_at) const;
  // The living member, or null with a kFenced effect added.
  Member* FindLiving(const SiteLife& life, MemberEffects* effects);
  void Change(const SiteName& name, Member* m, SiteState phase, MemberChange change, std::string reason,
              absl::Time now, MemberEffects* effects);
  void Speak(const SiteName& name, Member* m, absl::Time now, MemberEffects* effects);
  // Suspects or buries it if it was silent for long enough.
  void Judge(const SiteName& name, Member* m, absl::Time now, MemberEffects* effects);

  const MembershipOptions options_;
  Members members_;
  View view_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_MEMBERSHIP_MEMBERSHIP_H_
