#include "compression/tensor_survey.h"

#include <algorithm>
#include <cmath>

#include "compression/selection.h"
#include "compression/sparse_blocks.h"

namespace isthmus {
namespace {

constexpr int64_t kFewestBlocks = 8, kMostBlocks = 64, kBlocksPerSample = 64;

double Joined(const double* lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

double EnergyOf(absl::Span<const float> anchor, absl::Span<const float> parameters) {
  double lanes[8] = {};
  const size_t whole = anchor.size() / 8 * 8;
  for (size_t i = 0; i < whole; i += 8) {
    for (size_t lane = 0; lane < 8; ++lane) {
      const double d = anchor[i + lane] - parameters[i + lane];
      lanes[lane] += d * d;
    }
  }
  for (size_t i = whole; i < anchor.size(); ++i) {
    const double d = anchor[i] - parameters[i];
    lanes[i - whole] += d * d;
  }
  return Joined(lanes);
}

// Sums over a block's kept magnitudes.
struct KeptSums {
  int count = 0;  // without zeros
  double magnitudes = 0, squares = 0;
};

KeptSums SumsOf(const PickedBlock& picked) {
  double magnitudes[8] = {}, squares[8] = {};
  int count = 0;
  for (int i = 0; i < picked.kept; ++i) {
    const double m = picked.magnitudes[i];
    magnitudes[i % 8] += m;
    squares[i % 8] += m * m;
    count += m != 0;
  }
  return {count, Joined(magnitudes), Joined(squares)};
}

}  // namespace

int64_t SampledBlocks(int64_t blocks) {
  return std::min(blocks, std::clamp(blocks / kBlocksPerSample, kFewestBlocks, kMostBlocks));
}

TensorSurvey TensorSurveyor::Survey(absl::Span<const float> anchor, absl::Span<const float> parameters,
                                    int k) {
  const int64_t blocks = BlocksOf(static_cast<int64_t>(anchor.size()));
  const int64_t sampled = SampledBlocks(blocks);
  double energy = 0, kept_energy = 0, tails = 0;
  int64_t read = 0, live = 0;  // values of the blocks read; blocks that are not all zeros
  for (int64_t i = 0; i < sampled; ++i) {
    const size_t at = static_cast<size_t>(SampledBlock(blocks, sampled, i) * kBlockValues);
    const auto anchor_block = anchor.subspan(at, kBlockValues);  // shorter at the end
    const auto parameter_block = parameters.subspan(at, kBlockValues);
    const int64_t values = static_cast<int64_t>(anchor_block.size());
    if (!picker_.Pick(anchor_block, parameter_block, KeptValues(k, values), &picked_)) continue;
    read += values;
    energy += EnergyOf(anchor_block, parameter_block);
    const KeptSums sums = SumsOf(picked_);
    if (sums.count == 0) continue;
    ++live;
    kept_energy += sums.squares;
    tails += std::sqrt(sums.squares * sums.count) / sums.magnitudes;
  }
  TensorSurvey survey;
  if (live == 0) return survey;
  survey.energy = energy / static_cast<double>(read);
  survey.captured = kept_energy / energy;
  survey.tail = tails / static_cast<double>(live);
  return survey;
}

}  // namespace isthmus
