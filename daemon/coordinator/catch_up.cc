#include "daemon/coordinator/catch_up.h"

namespace isthmus {
namespace {

void AddCommitsAfter(const Servable& servable, int64_t round, Enlisted* path) {
  for (const CommitRecord& record : servable.commits) {
    if (record.key().round() > round) *path->add_commits() = record;
  }
}

// The updates after `round` exist when the run (or a kept snapshot) reaches back that far.
bool HasUpdatesAfter(const Servable& servable, int64_t round) {
  if (round < servable.snapshots.front().round()) return false;
  if (round == servable.snapshots.front().round()) return true;
  for (const CommitRecord& record : servable.commits) {
    if (record.key().round() == round) return true;
  }
  return false;
}

void SettlePending(const Servable& servable, int64_t anchor_round, const std::string& site,
                   const std::string& frame, Enlisted* path) {
  for (const CommitRecord& record : servable.commits) {
    // What the worker has applied it has settled; the same bytes may have been in an earlier round, too.
    if (record.key().round() <= anchor_round) continue;
    for (int i = 0; i < record.included_size(); ++i) {
      // By digest and site, never by incarnation: all-zero frames of two sites are the same bytes.
      if (record.included(i).frame_digest() != frame || record.included(i).life().site() != site) continue;
      path->set_pending_is_committed(true);
      path->set_pending_round(record.key().round());
      for (const LeftOut& l : record.left_out()) {
        if (l.included_index() == i) path->add_pending_left_out(l.tensor());
      }
      return;
    }
  }
}

}  // namespace

Enlisted PlanCatchUp(const Servable& servable, int64_t anchor_round, const std::string& site,
                     const std::string& pending_frame) {
  Enlisted path;
  if (anchor_round >= 0 && HasUpdatesAfter(servable, anchor_round)) {
    AddCommitsAfter(servable, anchor_round, &path);
  } else {
    path = PlanResync(servable);
  }
  if (!pending_frame.empty()) SettlePending(servable, anchor_round, site, pending_frame, &path);
  return path;
}

Enlisted PlanResync(const Servable& servable) {
  Enlisted path;
  *path.mutable_snapshot() = servable.snapshots.back();
  AddCommitsAfter(servable, servable.snapshots.back().round(), &path);
  return path;
}

}  // namespace isthmus
