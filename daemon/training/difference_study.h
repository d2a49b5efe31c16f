// What real differences are like for a codec: tails, energy by tensor, where the kept values lie, how sites'
// and rounds' masks relate. Over a folder of difference_dump.h.
#ifndef ISTHMUS_DAEMON_TRAINING_DIFFERENCE_STUDY_H_
#define ISTHMUS_DAEMON_TRAINING_DIFFERENCE_STUDY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/training/difference_dump.h"

namespace isthmus {

// One tensor at one k, over all differences of the set.
struct TensorStudy {
  double captured[4] = {};  // [bits], 1 … 3: share of the energy that a frame of equal bytes takes off
  double kept_energy = 0;   // share that the kept values hold, before levels
  double tail = 0;          // rms over mean of a block's kept magnitudes, averaged over blocks
  int64_t kept = 0;
  // Bits for the positions: MaskBits without context, by row, by column, by both, by the site's mask a round
  // before (over those differences that have one, with their plain bits beside).
  double plain_bits = 0, row_bits = 0, column_bits = 0, both_bits = 0;
  double before_bits = 0, before_plain_bits = 0;
};

// All tensors at one k.
struct DensityStudy {
  int64_t k = 0;
  int64_t equal_k[4] = {};  // [bits]: kept values of a block that cost what k of one bit do
  std::vector<TensorStudy> tensors;
  // Sites that kept a value, over the values that any kept; and if their masks were independent.
  double contributors = 0, contributors_by_chance = 0;
  // Of the values a site kept: how much more often than by chance it kept them the round before.
  double kept_again = 0;
};

struct DifferenceStudy {
  std::vector<DumpedTensor> tensors;
  std::vector<double> energy_share;  // per tensor, mean over the differences
  std::vector<double> value_share;
  int64_t differences = 0;
  std::vector<DensityStudy> densities;
};

// INVALID_ARGUMENT: no differences, a k not within 1 … 4096; else the set's and the codec's errors.
absl::StatusOr<DifferenceStudy> StudyDifferences(const DifferenceSet& set, const std::vector<int64_t>& ks);

// Tables for people.
std::string DifferenceTable(const DifferenceStudy& study);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_DIFFERENCE_STUDY_H_
