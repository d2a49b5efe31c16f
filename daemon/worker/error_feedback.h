// Error feedback: where a site keeps what it learned and no commit has taken, and how frames are taken from
// it (ROUNDS §5). It knows no messages, no tasks and no clock.
//
// Carried: what was not sent stays in the parameters, and so does what was sent until a commit has it; a
// frame only reads. Separate, the published form: parameters go back to the anchor when a frame is made; a
// buffer of its own, the residual, holds what no frame took. What a frame took is nowhere until its outcome
// is known; of a frame that was not committed it comes back into the residual, tensor by tensor.
//
// Not thread-safe; used by the replica, within its tasks.
#ifndef ISTHMUS_DAEMON_WORKER_ERROR_FEEDBACK_H_
#define ISTHMUS_DAEMON_WORKER_ERROR_FEEDBACK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/codec.h"
#include "compression/layout.h"
#include "compression/update.h"
#include "gpu/device_ops.h"

namespace isthmus {

enum class FeedbackForm : uint8_t { kCarried, kSeparate };

// A replica's arrays, all as long as the layout's total.
struct ReplicaArrays {
  const Layout& layout;
  absl::Span<float> anchor;
  absl::Span<float> parameters;
};

class ErrorFeedback {
 public:
  // What a decay gave up.
  struct Decayed {
    double square_sum = 0;
    std::vector<double>* trace = nullptr;  // for tests: gets it added value by value; null: not wanted
  };

  virtual ~ErrorFeedback() = default;

  // Nothing is carried beside the parameters any more, of which there are `values`.
  virtual void Clear(int64_t values) = 0;

  // A frame of what is carried, multiplied by β first (1: as it is). INVALID_ARGUMENT: NaN or Inf in it.
  virtual absl::StatusOr<std::string> Encode(const Codec& codec, float beta, const ReplicaArrays& arrays,
                                             Decayed* decayed) = 0;

  // A commit: moves anchor and parameters, and settles `own` (no frame: none of its own is settled): it
  // counts in the tensors included, in the others what it took is carried on. INVALID_ARGUMENT: sizes do not
  // fit.
  virtual absl::Status Apply(const Update& update, const OuterStep& step, const OwnFrame& own,
                             absl::Span<float> momentum, const ReplicaArrays& arrays) = 0;
  // The same for commits that a newer anchor sums up.
  virtual absl::Status MoveTo(absl::Span<const float> new_anchor, const OwnFrame& own,
                              const ReplicaArrays& arrays) = 0;

  // A frame came to nothing: what it took is carried on.
  virtual void Return(const Layout& layout, const DecodedFrame& frame) = 0;

  // What would be lost now with parameters ← anchor, when `pending` speaks for itself in the tensors included
  // (no frame: there is none, or it has no right).
  virtual std::vector<float> Carried(const Layout& layout, absl::Span<const float> anchor,
                                     absl::Span<const float> parameters, const OwnFrame& pending) const = 0;

  // The buffer beside the parameters; empty when all is in them, pending frames too.
  virtual absl::Span<const float> residual() const = 0;
};

// `ops` must outlive it.
std::unique_ptr<ErrorFeedback> MakeErrorFeedback(FeedbackForm form, DeviceOps* ops);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_WORKER_ERROR_FEEDBACK_H_
