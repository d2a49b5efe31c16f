// Membership, one open round and the late rule, driven by lines of text: what the scenario files are run on.
//
// Time moves only by `wait`; deadlines on the way are met in order, and the sites named in `alive` send
// heartbeats meanwhile. Every command answers with lines of text.
#ifndef ISTHMUS_TESTS_SIM_SCENARIOS_SCENARIO_WORLD_H_
#define ISTHMUS_TESTS_SIM_SCENARIOS_SCENARIO_WORLD_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/membership/membership.h"
#include "daemon/rounds/admission.h"
#include "daemon/rounds/grace.h"
#include "daemon/rounds/round.h"

namespace isthmus {

// Not thread-safe. A site is written NAME/INCARNATION; times are in seconds. Commands:
//   options [longest=S] [quorum=N] [minimum=N] [round=N]   before anything else; round: the next one's number
//   join LIFE · caught-up LIFE · beat LIFE · heard LIFE · lost LIFE · restored LIFE
//   leave LIFE · departed LIFE · evict LIFE WHY… · restart GRACE
//   alive LIFE… (they send heartbeats every second from now on) · silent LIFE…
//   in LIFE… (join, caught-up and alive, saying nothing)
//   open [last] [grace=S]      freezes the view and opens the next round; without grace= the learned one
//   contribute LIFE FRAME [base=N] [round=N]   base: the round whose anchor it was taken against
//   wait S · status · waiting
class ScenarioWorld {
 public:
  ScenarioWorld();

  // The answer, each line ended; a command that makes no sense answers with "? …".
  std::string Run(absl::string_view command);

 private:
  using Words = std::vector<std::string>;

  void Say(absl::string_view line);
  void Report(const MemberEffects& effects);
  void Report(const RoundDecision& decision);
  void RunOptions(const Words& words);
  void RunSite(const std::string& verb, const Words& words);
  void RunOpen(const Words& words);
  void RunContribute(const Words& words);
  void RunWait(absl::Duration d);
  void RunStatus();
  void Join(const SiteLife& life, bool is_quiet);

  absl::Time now_ = absl::UnixEpoch();
  RoundOptions options_;
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<RoundCore> round_;  // null until the first one; stays after its decision
  CommittedWindow window_;
  GraceLearner grace_;
  RoundId next_round_ = 1;
  std::map<SiteLife, absl::Time> next_beat_;
  std::string out_;
};

}  // namespace isthmus

#endif  // ISTHMUS_TESTS_SIM_SCENARIOS_SCENARIO_WORLD_H_
