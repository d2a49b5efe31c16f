// What a replica trains on: sequences by index, and a held-out part. A narrow seam, so that the worker needs
// neither files nor tokenizers.
#ifndef ISTHMUS_DAEMON_TRAINING_TRAINING_DATA_H_
#define ISTHMUS_DAEMON_TRAINING_TRAINING_DATA_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/base/digest.h"
#include "daemon/training/trainer.h"

namespace isthmus {

// Not thread-safe: used by one task at a time, like the trainer.
class TrainingData {
 public:
  virtual ~TrainingData() = default;

  // Training sequences: indices 0 … n − 1. The held-out part is not among them.
  virtual int64_t training_sequences() const = 0;

  // Of the whole file's bytes, as read when it was opened.
  virtual Digest digest() const = 0;

  // The rows of these sequences. INVALID_ARGUMENT: an index out of range.
  virtual absl::StatusOr<Batch> TrainingBatch(absl::Span<const int64_t> sequences) const = 0;

  // The held-out part in batches: all of it, or the fixed seeded subset of 8,192 tokens (less when there is
  // less).
  virtual std::vector<Batch> HeldOutBatches(bool whole) const = 0;

  // FAILED_PRECONDITION naming the file when it is no longer what was opened.
  virtual absl::Status CheckUnchanged() const = 0;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_TRAINING_DATA_H_
