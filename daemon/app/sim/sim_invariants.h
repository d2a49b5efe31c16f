// The invariants of ARCHITECTURE §3 and ROUNDS §8, checked from outside while a simulated run goes on.
//
// Cheap ones after every event, expensive ones whenever a stamp (an anchor's round) or the list of commits
// changed. It believes nobody: sums are made anew by the independent slow routine from recorded frames,
// anchors are rebuilt from the ledger's updates, masses are added up from the trainers. Not thread-safe.
#ifndef ISTHMUS_DAEMON_APP_SIM_SIM_INVARIANTS_H_
#define ISTHMUS_DAEMON_APP_SIM_SIM_INVARIANTS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/app/sim/recording_ledger.h"
#include "daemon/app/sim/recording_ops.h"
#include "daemon/app/sim/sim_run.h"

namespace isthmus {

// A violation's text begins with the invariant's name, in brackets.
enum class Invariant {
  kOneCommit,    // one commit for a round and fragment, in order
  kNoGoingBack,  // commits never go back or change, also across restarts
  kBase,         // a commit's base is the last committed state
  kDigests,      // equal anchor rounds have equal digests everywhere
  kMass,         // (i) what inner steps did = carried + committed + forfeited; and what the hub carries
  kSum,          // (ii) every update equals the weighted formula over its recorded set, encoded anew if so
                 // asked
  kProgress,     // once faults stop, the run finishes
  kBytes,        // bytes within budget
  kLeases,       // data leases of live lives are disjoint
  kForfeited,    // forfeited steps account for killed processes
  kEnded,        // no process ends without a reason the schedule gave it
};
std::string InvariantName(Invariant invariant);

class SimInvariants {
 public:
  struct Options {
    bool is_exact = false;        // fp32 arithmetic is exact in this run: masses must agree to the bit
    bool counts_forfeits = true;  // false where control messages are duplicated
  };
  // All must outlive this. `run` makes its ops by `frames` and wraps its ledgers with `updates`.
  SimInvariants(SimRun* run, const FrameRecorder* frames, const UpdateBytes* updates, Options options);

  // After each event.
  void AfterEvent();
  // Before a worker's process is killed, and before what is left of one is put away.
  void ProcessEnds(const std::string& site);
  // A bit of the site's anchor was flipped: its digests deviate until that is found.
  void NoteFlip(const std::string& site) { flipped_.insert(site); }
  // From `when` on, nothing goes wrong any more: whoever takes part must keep up.
  void CalmFrom(absl::Time when) { calm_from_ = when; }
  // The run is over (or should be).
  void AtEnd(int64_t resend_faults);
  void Report(Invariant invariant, const std::string& what);

  const std::vector<std::pair<Invariant, std::string>>& violations() const { return violations_; }

 private:
  // One worker process.
  struct Process {
    std::string site;
    StateStamp stamp;
    int64_t newest_round = -1;      // highest the replica was at
    std::vector<double> delivered;  // committed decoded payloads up to newest_round
    struct Counted {
      int64_t round = 0;
      std::string frame;
      std::vector<bool> included;
    };
    std::vector<Counted> waiting;  // committed, beyond newest_round
    std::vector<Counted> counted;  // of the last rounds
    int64_t applies = 0;
    bool has_joined = false, has_ended = false;
    absl::Time begun;
    int64_t behind = 0, not_included = 0;  // commits in a row, while all is calm
  };
  struct Books {
    int64_t least = 0, most = 0;  // steps that must, and may, be booked as forfeited
    // Of the process killed last: steps the coordinator knew of and books when the site's next process joins
    // or the run ends, unless it dies before.
    int64_t unbooked = 0;
  };

  void LookAtCommits();
  void TakeCommit(const CommitRecord& record);
  void CheckSum(const CommitRecord& record, const Update& update);
  void CheckEncodedAnew(const CommitRecord& record, const Update& exact, const Update& update);
  void CheckState(const CommitRecord& record, const Update& update);
  void CheckWeights(const CommitRecord& record);
  void LookAtWorker(const std::string& site, SimRun::WorkerProcess* process);
  void CheckDigest(const std::string& site, const Replica& replica);
  void CheckMass(Process* p, SimRun::WorkerProcess* process);
  void AddOpenFrames(const Process& p, const Worker& worker, std::vector<double>* sums) const;
  void Deliver(Process* p, const Process::Counted& counted);
  void CheckKeepingUp(const CommitRecord& record);
  void CheckLeases();
  void CheckBytes(int64_t resend_faults);
  void CheckForfeited();
  void BookKill(const std::string& site, const SimRun::WorkerProcess& process);
  Process& ProcessOf(const std::string& site, const SimRun::WorkerProcess& process);

  SimRun* const run_;
  const FrameRecorder* const frames_;
  const UpdateBytes* const updates_;
  const Options options_;
  std::vector<std::pair<Invariant, std::string>> violations_;

  std::vector<CommitRecord> commits_;      // as first seen
  std::vector<std::string> commit_bytes_;  // the same, serialised
  std::map<int64_t, std::string> digest_of_round_;
  int64_t coordinator_ = 0;  // process whose list was compared as a whole
  std::unique_ptr<DeviceOps> ops_;
  std::vector<float> anchor_, momentum_;  // rebuilt from the ledger's updates
  std::vector<float> residual_;           // what the hub must carry, by the formula
  std::map<int64_t, Process> processes_;
  std::set<std::string> flipped_;
  absl::Time calm_from_ = absl::InfiniteFuture();
  std::map<std::string, Books> books_;
  bool is_over_ = false;
  int64_t events_ = 0, restarts_ = 0, kills_ = 0;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_SIM_SIM_INVARIANTS_H_
