#include "daemon/app/run_resolve.h"

#include <algorithm>

#include "absl/status/status.h"
#include "compression/codec_spec.h"
#include "daemon/base/status.h"
#include "daemon/training/schedule.h"

namespace isthmus {
int64_t EstimateRounds(const RunFile& run, int64_t sites) {
  const RoundConfig& rounds = run.rounds();
  int64_t total = rounds.has_total_rounds() ? rounds.total_rounds() : INT64_MAX;
  if (rounds.has_total_tokens()) {
    // In floating point, since absurd settings must not overflow; 53 bits are plenty for an estimate.
    const double per_round = static_cast<double>(std::max<int64_t>(sites, 1)) *
                             static_cast<double>(rounds.inner_steps_per_round()) *
                             static_cast<double>(run.data().sequences_per_step()) *
                             static_cast<double>(run.model().context());
    const double estimate = static_cast<double>(rounds.total_tokens()) / std::max(per_round, 1.0);
    const int64_t whole = estimate >= 1e15 ? int64_t{1000000000000000} : static_cast<int64_t>(estimate);
    total = std::min(total, static_cast<double>(whole) < estimate ? whole + 1 : whole);
  }
  return std::max<int64_t>(total, 1);
}

absl::StatusOr<ResolvedRun> ResolveAuto(const RunFile& run, int64_t sites) {
  if (!run.rounds().has_total_rounds() && !run.rounds().has_total_tokens()) {
    return absl::InvalidArgumentError("rounds: neither total_rounds nor total_tokens is given");
  }
  ResolvedRun resolved;
  resolved.total_rounds = EstimateRounds(run, sites);
  if (__builtin_mul_overflow(resolved.total_rounds, run.rounds().inner_steps_per_round(),
                             &resolved.total_schedule_steps)) {
    return absl::InvalidArgumentError("rounds: total_rounds times inner_steps_per_round is too large");
  }
  ISTHMUS_ASSIGN_OR_RETURN(resolved.codecs, ResolveTraffic(run.exchange(), resolved.total_rounds));
  ISTHMUS_ASSIGN_OR_RETURN(const CodecSpec spec, ParseSpecText(resolved.codecs.contribution));
  resolved.is_dense = spec.kind == CodecSpec::Kind::kDense;
  resolved.is_nesterov = run.outer().form() == OuterConfig::NESTEROV;
  if (run.outer().has_rate()) {
    resolved.outer_rate = static_cast<float>(run.outer().rate());
  } else if (!resolved.is_dense) {
    resolved.outer_rate = static_cast<float>(AutoOuterRate(resolved.total_schedule_steps));
  }
  if (resolved.is_nesterov) resolved.outer_momentum = static_cast<float>(run.outer().momentum());
  return resolved;
}

ModelShape ModelShapeOf(const ModelConfig& model) {
  ModelShape shape;
  shape.vocabulary = model.vocabulary();
  shape.width = model.width();
  shape.layers = model.layers();
  shape.heads = model.heads();
  shape.kv_heads = model.kv_heads();
  shape.feed_forward = model.feed_forward();
  shape.context = model.context();
  shape.is_head_tied = model.tied_head();
  return shape;
}

}  // namespace isthmus
