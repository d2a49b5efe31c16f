#include "compression/tensor_plan.h"

#include <memory>

#include "compression/bit_budget.h"
#include "compression/tensor_survey.h"

namespace isthmus {
namespace {

std::vector<TensorSurvey> Surveys(const CodecSpec& spec, const Layout& layout, absl::Span<const float> anchor,
                                  absl::Span<const float> parameters, SimdPath path) {
  const auto surveyor = std::make_unique<TensorSurveyor>(path);
  std::vector<TensorSurvey> surveys;
  surveys.reserve(layout.tensors());
  for (int t = 0; t < layout.tensors(); ++t) {
    const size_t at = static_cast<size_t>(layout.offset(t)), size = static_cast<size_t>(layout.size(t));
    surveys.push_back(surveyor->Survey(anchor.subspan(at, size), parameters.subspan(at, size), spec.k));
  }
  return surveys;
}

std::vector<int> Shares(const CodecSpec& spec, const Layout& layout,
                        const std::vector<TensorSurvey>& surveys) {
  std::vector<EnergyClaim> claims;
  claims.reserve(surveys.size());
  for (int t = 0; t < layout.tensors(); ++t) claims.push_back({layout.size(t), surveys[t].energy});
  return ShareByEnergy(claims, spec.k, spec.value_bits == kAutoValueBits ? 1 : spec.value_bits);
}

}  // namespace

int ValueBitsFor(double tail) { return tail < kTwoBitTail ? 1 : tail < kThreeBitTail ? 2 : 3; }

int LloydStepsFor(double tail) { return tail < kRefinedTail ? 0 : tail < kTwoBitTail ? 2 : 4; }

bool PlansByValues(const CodecSpec& spec) {
  return spec.share == CodecSpec::Share::kEnergy || spec.value_bits != 1;
}

std::vector<TensorPlan> PlanTensors(const CodecSpec& spec, const Layout& layout,
                                    absl::Span<const float> anchor, absl::Span<const float> parameters,
                                    SimdPath path) {
  TensorPlan uniform;
  uniform.k = spec.k;
  uniform.value_bits = spec.value_bits;
  std::vector<TensorPlan> plans(layout.tensors(), uniform);
  const bool is_shared = spec.share == CodecSpec::Share::kEnergy;
  if (!PlansByValues(spec)) return plans;
  const std::vector<TensorSurvey> surveys = Surveys(spec, layout, anchor, parameters, path);
  const std::vector<int> shares = is_shared ? Shares(spec, layout, surveys) : std::vector<int>();
  for (int t = 0; t < layout.tensors(); ++t) {
    TensorPlan& plan = plans[t];
    if (is_shared) plan.k = shares[t];
    if (spec.value_bits == kAutoValueBits) {
      plan.value_bits = ValueBitsFor(surveys[t].tail);
      plan.k = KeptAtEqualCost(plan.k, 1, plan.value_bits);
    }
    if (plan.value_bits > 1) plan.lloyd_steps = LloydStepsFor(surveys[t].tail);
  }
  return plans;
}

}  // namespace isthmus
