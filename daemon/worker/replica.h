// One site's copy of the model: anchor, parameters, trainer and data, and the rules that move them together
// (ROUNDS §5). It knows no messages and no clock.
//
// Not thread-safe: every call runs in a task of one TaskRunner, so its state is never touched by two.
#ifndef ISTHMUS_DAEMON_WORKER_REPLICA_H_
#define ISTHMUS_DAEMON_WORKER_REPLICA_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/codec.h"
#include "compression/update.h"
#include "daemon/base/digest.h"
#include "daemon/training/tensor_table.h"
#include "daemon/training/trainer.h"
#include "daemon/training/training_data.h"
#include "daemon/worker/error_feedback.h"
#include "gpu/device_ops.h"

namespace isthmus {

// A frame and what it decodes to; the decoded half is what the outcome rule adds back.
struct EncodedFrame {
  std::shared_ptr<const std::string> bytes;  // shared with the upload, which may still be retrying
  std::shared_ptr<const DecodedFrame> decoded;
  Digest digest;       // of the bytes
  Digest base_digest;  // state digest recomputed from the anchor the encoder read
};

// One committed update as the replica needs it.
struct CommittedStep {
  StateStamp stamp;  // of the anchor after it
  OuterStep outer;
  std::string update;                 // its bytes
  const DecodedFrame* own = nullptr;  // the pending frame, when it still has its right
  int own_index = -1;                 // its place in the included list; −1: not included
};

class Replica {
 public:
  struct Parts {
    TensorTable table;
    std::unique_ptr<Trainer> trainer;
    std::unique_ptr<TrainingData> data;
  };

  // `ops` must outlive the replica.
  Replica(Parts parts, DeviceOps* ops, FeedbackForm form = FeedbackForm::kCarried);

  const TensorTable& table() const { return parts_.table; }
  const TrainingData& data() const { return *parts_.data; }
  Trainer& trainer() { return *parts_.trainer; }
  const StateStamp& stamp() const { return stamp_; }
  absl::Span<const float> anchor() const { return anchor_; }
  Digest AnchorDigest() const;

  // Takes a snapshot for a replica that has no anchor yet: parameters start at it.
  // INVALID_ARGUMENT when the values do not fit the table.
  absl::Status Begin(const StateStamp& stamp, std::vector<float> anchor, std::vector<float> momentum);

  // Takes a newer anchor while keeping what is carried: the outcome rule with shift = new − own anchor, and
  // the pending frame settled for the tensors in `own` (ROUNDS §5, catch-up of a live worker).
  absl::Status MoveTo(const StateStamp& stamp, std::vector<float> anchor, std::vector<float> momentum,
                      const OwnFrame& own);

  // Takes the anchor it was told is right: parameters ← anchor, moments kept. Returns the forfeited sum of
  // squares: what was carried less the pending frame (null when it has no right) in the tensors it counts in.
  absl::StatusOr<double> Resync(const StateStamp& stamp, std::vector<float> anchor,
                                std::vector<float> momentum, const OwnFrame& pending);

  // Parameters ← anchor, moments 0: after NaN or Inf. Returns the forfeited sum of squares over what is
  // finite.
  double Reset(const DecodedFrame* pending);

  absl::StatusOr<StepResult> Step(absl::Span<const int64_t> sequences, double rate);

  // Encodes what is carried, after the carry decay (1: none). INVALID_ARGUMENT: NaN or Inf in it.
  // `decay_forfeited` gets the sum of squares that the decay gave up.
  absl::StatusOr<EncodedFrame> Encode(const Codec& codec, double carry_decay, double* decay_forfeited);

  // Applies one commit to anchor and parameters; returns the state digest after it.
  absl::StatusOr<Digest> Apply(const CommittedStep& step);

  // A frame that has its right came to nothing: what it said stays carried.
  void Return(const DecodedFrame& frame) { feedback_->Return(parts_.table.layout(), frame); }

  // A frame whose right a reset had taken turned out not to count, in the tensors given by `lost`: that mass
  // is gone. Returns its sum of squares. Reads only the frame, so it may be called between tasks.
  double ForfeitFrame(const OwnFrame& lost);

  // For tests: from now on adds up what is forfeited, value by value.
  void TraceForfeited() {
    forfeited_.assign(anchor_.size(), 0.0);
    is_traced_ = true;
  }
  const std::vector<double>& forfeited() const { return forfeited_; }
  // What is carried beside the parameters; empty when all is in them, what a pending frame says too.
  absl::Span<const float> residual() const { return feedback_->residual(); }

  // Flips the lowest bit of one anchor value: the planted defect of tests.
  void FlipAnchorBit(int64_t position);

  // Sum of squares of what is carried, less the pending frame (null: none).
  double CarriedSquareSum(const DecodedFrame* pending) const;

 private:
  ReplicaArrays Arrays() { return {parts_.table.layout(), absl::MakeSpan(anchor_), parameters()}; }
  absl::Span<float> parameters() const { return parts_.trainer->parameters(); }
  std::vector<float> Carried(const OwnFrame& pending) const {
    return feedback_->Carried(parts_.table.layout(), anchor_, parameters(), pending);
  }
  double Forfeit(absl::Span<const float> values);
  absl::Status CheckSizes(absl::Span<const float> anchor, absl::Span<const float> momentum) const;

  Parts parts_;
  const std::unique_ptr<ErrorFeedback> feedback_;
  StateStamp stamp_;
  std::vector<float> anchor_;
  std::vector<float> momentum_;  // of the outer optimizer; empty for the plain form
  bool is_traced_ = false;
  std::vector<double> forfeited_;
  // Of the last commit, for the memory they hold.
  Update update_;
  UpdateScratch update_scratch_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_WORKER_REPLICA_H_
