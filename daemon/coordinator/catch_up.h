// The way from what a worker has to the newest anchor: updates if they are all there, else a snapshot and the
// updates after it. Pure.
#ifndef ISTHMUS_DAEMON_COORDINATOR_CATCH_UP_H_
#define ISTHMUS_DAEMON_COORDINATOR_CATCH_UP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "protos/control.pb.h"
#include "protos/records.pb.h"

namespace isthmus {

// What the coordinator can serve. Commits by round; updates of rounds up to the oldest snapshot are pruned.
struct Servable {
  absl::Span<const CommitRecord> commits;
  absl::Span<const SnapshotInfo> snapshots;  // by round; never empty
};

// `anchor_round`: the worker's, −1 for none. `pending_frame`: digest of `site`'s pending frame, or empty.
Enlisted PlanCatchUp(const Servable& servable, int64_t anchor_round, const std::string& site,
                     const std::string& pending_frame);

// The way from the newest snapshot, whatever the worker has.
Enlisted PlanResync(const Servable& servable);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_COORDINATOR_CATCH_UP_H_
