// Faults by name, side, budget and seed: what goes wrong on a simulated link, and when.
//
// Pure: Strike answers whether a fault hits this opportunity; SimTransport then makes it happen. Same faults
// and same order of opportunities, same strikes. Not thread-safe.
#ifndef ISTHMUS_DAEMON_EXCHANGE_FAULT_PLAN_H_
#define ISTHMUS_DAEMON_EXCHANGE_FAULT_PLAN_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "daemon/base/random.h"

namespace isthmus {

enum class FaultKind {
  kRequestLost,   // never arrives; the connection breaks, or is silent about it
  kReplyLost,     // the work is done, the sender never hears of it
  kDelayed,       // arrives `length` later, and what follows on the same connection behind it
  kDuplicated,    // arrives twice
  kReordered,     // arrives after what was sent next, or after `length`
  kClogged,       // nothing passes this way for `length`, then all of it; or breaks
  kPeerSlow,      // for `length` the site's link is `factor` times slower
  kBytesFlipped,  // one bit of a piece arrives wrong
  kBroken,        // the connection breaks when `fraction` of the bytes are across
};

absl::string_view FaultKindName(FaultKind kind);

// What a fault may hit.
enum class FaultTarget { kAny, kControl, kUpload, kFetch };

// Which way: what the worker sends, or what the hub sends.
enum class FaultSide { kUp, kDown };

struct Fault {
  FaultKind kind = FaultKind::kDelayed;
  FaultTarget target = FaultTarget::kAny;
  FaultSide side = FaultSide::kUp;
  std::string site;        // empty: any site
  int64_t budget = 1;      // how often it strikes
  double probability = 1;  // of striking an opportunity; drawn from `seed`
  uint64_t seed = 0;
  int64_t skip = 0;  // opportunities let pass first
  absl::Duration length = absl::Seconds(1);
  double factor = 4;           // kPeerSlow
  double fraction = 0.5;       // kBroken
  bool is_silent = false;      // kRequestLost: nothing breaks, nobody is told
  bool is_breaking = false;    // kClogged: the connection breaks at the end
  bool is_undetected = false;  // kBytesFlipped: past the digest check of the transport
};

class FaultPlan {
 public:
  void Add(const Fault& fault);

  // Whether some fault hits this opportunity; the first that does, in the order added. Uses up its budget.
  absl::optional<Fault> Strike(FaultTarget target, FaultSide side, absl::string_view site);

  // Strikes so far.
  int64_t struck(FaultKind kind) const;

  void Clear() { armed_.clear(); }

 private:
  struct Armed {
    Fault fault;
    Random random;
  };
  std::vector<Armed> armed_;
  std::map<FaultKind, int64_t> struck_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_EXCHANGE_FAULT_PLAN_H_
