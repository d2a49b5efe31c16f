// One training run of the learning comparison: one process, the sites simulated in turn, everything that
// decides about learning done as the product does it: error feedback (ROUNDS §5) with real frames through
// codec, exact sum and outcome rule, H_r steps for slow sites, the product's schedule and defaults.
//
// Not simulated: links, deaths and time. Deterministic for a given case (and machine).
#ifndef ISTHMUS_DAEMON_TRAINING_LEARNING_RUN_H_
#define ISTHMUS_DAEMON_TRAINING_LEARNING_RUN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/update.h"
#include "daemon/training/tensor_table.h"
#include "daemon/training/trainer.h"
#include "daemon/training/training_data.h"
#include "gpu/device_ops.h"

namespace isthmus {

enum class LearningForm : uint8_t {
  kSynchronous,    // one AdamW; batch = the sum of the sites' batches, every step
  kDense,          // 24-bit dense exchange every H steps, plain average
  kDenseNesterov,  // the same with outer momentum 0.5, rate 0.5
  kSparse,         // the default: block top-k, 1 bit, carried error feedback
};

enum class LearningFeedback : uint8_t {
  kCarried,   // parameters are never reset; what was not sent stays in them
  kSeparate,  // parameters are reset to the anchor; what was not sent stays in a residual. No delay.
};

// What a contribution's weight measures (ROUNDS §8).
enum class LearningWeights : uint8_t { kTokensPerStep, kTokens, kEqual };

// "synchronous", "dense", "dense-nesterov", "sparse".
std::string LearningFormName(LearningForm form);

struct LearningCase {
  LearningForm form = LearningForm::kSparse;
  double peak_rate = 3e-3;
  uint64_t seed = 0;        // of initial values and of the order of the data
  int64_t tokens = 921600;  // of all sites together; decides the rounds
  int64_t sites = 3;
  int64_t inner_steps = 15;      // H
  int64_t sequences = 4;         // per inner step of a site
  std::vector<double> slowness;  // per site, H_r = round(H / slowness); empty: all at full speed
  // kSparse, or kDense where it says so.
  int64_t kept_per_block = 0;  // 0: auto
  int64_t value_bits = 1;
  std::string codec;          // the whole codec spec, instead of the two above
  double outer_rate = 0;      // 0: auto
  double outer_momentum = 0;  // Nesterov's μ
  LearningFeedback feedback = LearningFeedback::kCarried;
  double carry_decay = 1;                     // β
  std::string last_codec = "dense(bits=24)";  // flushes what is carried, at outer rate 1; empty: none
  int64_t down_kept_per_block = 0;            // the update re-compressed to so many; 0: exact
  int64_t down_value_bits = 1;                // of a re-compressed update
  int64_t outcome_delay_steps = 0;            // steps of the next round done before an outcome is applied
  Averaging averaging = Averaging::kPeers;    // kDense too
  LearningWeights weights = LearningWeights::kTokensPerStep;  // kDense too
};

// Text that names the case: equal texts, equal cases.
std::string LearningCaseKey(const LearningCase& c);

struct LearningResult {
  double loss = 0;            // held-out, of the final anchor, nats per token
  std::vector<double> curve;  // held-out subset after a quarter, a half and three quarters
  int64_t rounds = 0;         // 0 for kSynchronous
  int64_t steps = 0;          // nominal inner steps
  int64_t tokens = 0;         // trained on by all sites
  int64_t parameters = 0;
  int64_t kept_per_block = 0;
  double outer_rate = 0;
  // Bytes per parameter, of one site: mean over the rounds before the last, and the last. For kSynchronous
  // per step and computed, not counted: a dense fp32 gradient each way.
  double up_bytes = 0, down_bytes = 0, last_up_bytes = 0, last_down_bytes = 0;

  // The same over the whole run.
  double all_up_bytes() const;
  double all_down_bytes() const;
};

// What a run needs; all must outlive the call.
struct LearningSetup {
  const TensorTable* table = nullptr;
  const TrainingData* data = nullptr;
  DeviceOps* ops = nullptr;
  std::function<absl::StatusOr<std::unique_ptr<Trainer>>(absl::Span<const float> initial)> make_trainer;
  std::vector<Batch> held_out;                    // evaluated at the end
  std::vector<Batch> held_out_subset;             // for the curve
  std::function<void(absl::string_view)> report;  // progress, a line at a time; may be empty
  // What each site is about to encode: round, site, anchor − parameters (plus the residual of kSeparate).
  // May be empty. An error ends the run.
  std::function<absl::Status(int64_t round, int64_t site, absl::Span<const float> difference)> on_difference;
};

// DATA_LOSS when the run diverged (NaN or Inf); INVALID_ARGUMENT for an impossible case; INTERNAL when a
// site's anchor is not the hub's bit for bit.
absl::StatusOr<LearningResult> RunLearningCase(const LearningSetup& setup, const LearningCase& c);

// Mean loss over the batches, weighted by their tokens.
absl::StatusOr<double> EvaluateBatches(Trainer* trainer, absl::Span<const float> parameters,
                                       const std::vector<Batch>& batches);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_LEARNING_RUN_H_
