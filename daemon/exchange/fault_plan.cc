#include "daemon/exchange/fault_plan.h"

namespace isthmus {

absl::string_view FaultKindName(FaultKind kind) {
  switch (kind) {
    case FaultKind::kRequestLost:
      return "request_lost";
    case FaultKind::kReplyLost:
      return "reply_lost";
    case FaultKind::kDelayed:
      return "delayed";
    case FaultKind::kDuplicated:
      return "duplicated";
    case FaultKind::kReordered:
      return "reordered";
    case FaultKind::kClogged:
      return "clogged";
    case FaultKind::kPeerSlow:
      return "peer_slow";
    case FaultKind::kBytesFlipped:
      return "bytes_flipped";
    case FaultKind::kBroken:
      return "broken";
  }
  return "unknown";
}

void FaultPlan::Add(const Fault& fault) { armed_.push_back({fault, Random(fault.seed)}); }

absl::optional<Fault> FaultPlan::Strike(FaultTarget target, FaultSide side, absl::string_view site) {
  for (Armed& armed : armed_) {
    Fault& fault = armed.fault;
    if (fault.budget <= 0 || fault.side != side) continue;
    if (fault.target != FaultTarget::kAny && fault.target != target) continue;
    if (!fault.site.empty() && fault.site != site) continue;
    if (fault.skip > 0) {
      --fault.skip;
      continue;
    }
    if (!armed.random.Chance(fault.probability)) continue;
    --fault.budget;
    ++struck_[fault.kind];
    return fault;
  }
  return absl::nullopt;
}

int64_t FaultPlan::struck(FaultKind kind) const {
  auto it = struck_.find(kind);
  return it == struck_.end() ? 0 : it->second;
}

}  // namespace isthmus
