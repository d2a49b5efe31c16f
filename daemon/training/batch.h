// Checks every trainer makes of a batch or of a flat array before it looks inside.
#ifndef ISTHMUS_DAEMON_TRAINING_BATCH_H_
#define ISTHMUS_DAEMON_TRAINING_BATCH_H_

#include "absl/status/status.h"
#include "daemon/training/trainer.h"

namespace isthmus {

// INVALID_ARGUMENT naming the row and position: counts that are not positive or do not fit the tokens, a
// token below 0 or beyond the vocabulary.
absl::Status CheckBatchTokens(const Batch& batch, int64_t vocabulary);

// INVALID_ARGUMENT for a prompt that is empty or has a token beyond the vocabulary, or a negative count or
// a temperature that is no finite number ≥ 0.
absl::Status CheckSampleRequest(absl::Span<const int32_t> prompt, int64_t count, double temperature,
                                int64_t vocabulary);

// INVALID_ARGUMENT unless the moments fit `values` and are finite.
absl::Status CheckMoments(const InnerMoments& moments, int64_t values);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_BATCH_H_
