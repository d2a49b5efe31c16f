// A replica of six values over the toy trainer, for tests of what moves them.
#ifndef ISTHMUS_DAEMON_WORKER_REPLICA_FIXTURE_H_
#define ISTHMUS_DAEMON_WORKER_REPLICA_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/training/toy_trainer.h"
#include "daemon/worker/replica.h"
#include "gtest/gtest.h"

namespace isthmus {

inline constexpr int64_t kValues = 6;  // two tensors: 2 and 4 values

class NoData : public TrainingData {
 public:
  int64_t training_sequences() const override { return 10; }
  Digest digest() const override { return {1, 1}; }
  absl::StatusOr<Batch> TrainingBatch(absl::Span<const int64_t> sequences) const override {
    Batch b;
    b.sequences = sequences.size();
    b.length = 1;
    for (int64_t s : sequences) b.tokens.insert(b.tokens.end(), {static_cast<int32_t>(s), 0});
    return b;
  }
  std::vector<Batch> HeldOutBatches(bool) const override { return {}; }
  absl::Status CheckUnchanged() const override { return absl::OkStatus(); }
};

// A replica of a toy model beside a hub's anchor, in either form of error feedback.
class ReplicaTest : public testing::Test {
 protected:
  explicit ReplicaTest(FeedbackForm form = FeedbackForm::kCarried)
      : ops_(MakeCpuDeviceOps()), codec_(*ParseCodecSpec("dense(bits=24)|zstd(1)")) {
    Replica::Parts parts;
    parts.table = ToyTensorTable(kValues);
    std::unique_ptr<ToyTrainer> trainer =
        *ToyTrainer::Create(parts.table, ToyOptions(), std::vector<float>(kValues, 0.0f));
    trainer_ = trainer.get();
    parts.trainer = std::move(trainer);
    parts.data = std::make_unique<NoData>();
    replica_ = std::make_unique<Replica>(std::move(parts), ops_.get(), form);
    EXPECT_TRUE(replica_->Begin({0, 0, 0, 0}, std::vector<float>(kValues, 0.5f), {}).ok());
    replica_->TraceForfeited();
  }

  absl::Span<float> p() { return trainer_->parameters(); }
  std::vector<float> Parameters() { return {p().begin(), p().end()}; }
  std::vector<float> Anchor() { return {replica_->anchor().begin(), replica_->anchor().end()}; }

  EncodedFrame Encode() {
    double decayed = 0;
    return *replica_->Encode(*codec_, 1, &decayed);
  }

  // The commit of these frames with weight 64 each.
  CommittedStep StepOf(const std::vector<const DecodedFrame*>& frames) {
    std::vector<WeightedFrame> weighted;
    for (const DecodedFrame* f : frames) weighted.push_back({f, 64, {}});
    const Layout& layout = replica_->table().layout();
    CommittedStep step;
    step.stamp = {1, 10, 0, 0};
    step.update = EncodeUpdate(layout, *ops_->Sum(layout, weighted, Averaging::kPeers));
    return step;
  }

  std::unique_ptr<DeviceOps> ops_;
  std::unique_ptr<Codec> codec_;
  ToyTrainer* trainer_ = nullptr;
  std::unique_ptr<Replica> replica_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_WORKER_REPLICA_FIXTURE_H_
