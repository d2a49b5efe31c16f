#include "daemon/coordinator/anchor_keeper.h"

#include "daemon/store/commit_record.h"
#include "daemon/store/mem_ledger.h"
#include "daemon/training/toy_trainer.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

constexpr char kSpec[] = "dense(bits=24)|zstd(1)";

// Hands out damaged updates (or residuals) of one round.
class DamagedLedger : public MemLedger {
 public:
  DamagedLedger(std::shared_ptr<MemDisk> disk, std::shared_ptr<const TensorTable> table, int64_t round,
                BlobKind kind = UPDATE)
      : MemLedger(std::move(disk), std::move(table)), round_(round), kind_(kind) {}

  absl::StatusOr<std::shared_ptr<const BlobSource>> OpenBlob(const BlobName& name) override {
    absl::StatusOr<std::shared_ptr<const BlobSource>> blob = MemLedger::OpenBlob(name);
    if (!blob.ok() || name.kind != kind_ || name.round != round_) return blob;
    return std::make_shared<const Damaged>(*std::move(blob));
  }

 private:
  class Damaged : public BlobSource {
   public:
    explicit Damaged(std::shared_ptr<const BlobSource> blob) : blob_(std::move(blob)) {}
    int64_t size() const override { return blob_->size(); }
    absl::StatusOr<std::string> Read(int64_t offset, int64_t bytes) const override {
      absl::StatusOr<std::string> read = blob_->Read(offset, bytes);
      if (read.ok() && !read->empty()) read->back() ^= 1;
      return read;
    }

   private:
    const std::shared_ptr<const BlobSource> blob_;  // the ledger's, which may prune it
  };
  const int64_t round_;
  const BlobKind kind_;
};

class AnchorKeeperTest : public testing::Test {
 protected:
  AnchorKeeperTest()
      : ops_(MakeCpuDeviceOps()),
        table_(std::make_shared<const TensorTable>(ToyTensorTable(12))),
        disk_(std::make_shared<MemDisk>()),
        ledger_(std::make_unique<MemLedger>(disk_, table_)),
        keeper_(*table_, ops_.get()) {
    EXPECT_TRUE(ledger_->Begin(RunRecord()).ok());
    keeper_.BeginNew(1);
    EXPECT_TRUE(ledger_->AddSnapshot(keeper_.Info(), keeper_.Values(), 2).ok());
  }

  // A frame that says: every value should be lower by `by`.
  std::shared_ptr<const CheckedFrame> Frame(float by) {
    const std::vector<float> anchor(12, 0.0f), parameters(12, -by);
    absl::StatusOr<std::unique_ptr<Codec>> codec = ParseCodecSpec(kSpec);
    const std::string bytes = *(*codec)->Encode(table_->layout(), anchor, parameters);
    return *keeper_.Check(kSpec, bytes);
  }

  CommitRecord CommitRoundOf(int64_t round, bool is_nesterov = false, const std::string& update_codec = "") {
    CommitRecord record;
    record.set_update_codec(update_codec);
    record.mutable_key()->set_round(round);
    record.set_schedule_step(round * 10);
    record.set_is_nesterov(is_nesterov);
    record.set_outer_rate_bits(BitsOfFloat(1.0f));
    record.set_outer_momentum_bits(is_nesterov ? BitsOfFloat(0.5f) : 0);
    for (int i = 0; i < 2; ++i) record.add_included()->set_weight(64);
    record.set_total_weight(128);
    absl::StatusOr<AnchorKeeper::Result> result =
        keeper_.CommitRound(record, {Frame(0.25f), Frame(0.75f)}, Averaging::kPeers);
    EXPECT_TRUE(result.ok()) << result.status();
    record.set_update_digest(DigestOf(absl::string_view(result->update)).ToBytes());
    record.set_state_digest(result->state_digest.ToBytes());
    LedgerWrite also;
    if (result->residual != nullptr) {
      record.set_residual_digest(DigestOf(absl::Span<const float>(*result->residual)).ToBytes());
      record.set_residual_square_sum(result->residual_square_sum);
      also.residual = {reinterpret_cast<const char*>(result->residual->data()), result->residual->size() * 4};
    }
    EXPECT_TRUE(ledger_->Commit(record, result->update, also).ok());
    return record;
  }

  std::unique_ptr<DeviceOps> ops_;
  std::shared_ptr<const TensorTable> table_;
  std::shared_ptr<MemDisk> disk_;
  std::unique_ptr<Ledger> ledger_;
  AnchorKeeper keeper_;
};

TEST_F(AnchorKeeperTest, ACommitMovesTheAnchorByTheWeightedMean) {
  const CommitRecord record = CommitRoundOf(1);
  EXPECT_EQ(keeper_.anchor(), std::vector<float>(12, -0.5f));
  EXPECT_EQ(keeper_.stamp().round, 1);
  EXPECT_EQ(keeper_.stamp().schedule_step, 10);
  EXPECT_EQ(keeper_.AnchorDigest().ToBytes(), record.state_digest());
}

TEST_F(AnchorKeeperTest, ItIsRebuiltFromTheNewestSnapshotAndTheUpdatesAfterIt) {
  CommitRoundOf(1);
  CommitRoundOf(3);
  ASSERT_TRUE(ledger_->AddSnapshot(keeper_.Info(), keeper_.Values(), 1).ok());
  CommitRoundOf(4);
  CommitRoundOf(5);
  AnchorKeeper again(*table_, ops_.get());
  const absl::Status recovered = again.Recover(ledger_.get(), *ledger_->Load());
  ASSERT_TRUE(recovered.ok()) << recovered;
  EXPECT_EQ(again.anchor(), keeper_.anchor());
  EXPECT_EQ(again.stamp().round, 5);
  EXPECT_EQ(again.AnchorDigest(), keeper_.AnchorDigest());
}

TEST_F(AnchorKeeperTest, OuterMomentumIsRebuiltToo) {
  CommitRoundOf(1, true);
  CommitRoundOf(2, true);
  AnchorKeeper again(*table_, ops_.get());
  ASSERT_TRUE(again.Recover(ledger_.get(), *ledger_->Load()).ok());
  EXPECT_EQ(again.AnchorDigest(), keeper_.AnchorDigest());
  EXPECT_EQ(again.Values().momentum, keeper_.Values().momentum);
  EXPECT_FALSE(again.Values().momentum.empty());
}

TEST_F(AnchorKeeperTest, ADamagedUpdateIsDataLossThatNamesTheRound) {
  CommitRoundOf(1);
  CommitRoundOf(2);
  DamagedLedger damaged(disk_, table_, 2);
  AnchorKeeper again(*table_, ops_.get());
  const absl::Status recovered = again.Recover(&damaged, *damaged.Load());
  EXPECT_EQ(recovered.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(recovered.message().find("round 2"), std::string::npos) << recovered;
}

TEST_F(AnchorKeeperTest, AnAnchorThatIsNotTheCommittedOneIsDataLoss) {
  CommitRoundOf(1);
  LedgerState state = *ledger_->Load();
  state.commits.back().set_state_digest(std::string(16, 'x'));
  AnchorKeeper again(*table_, ops_.get());
  EXPECT_EQ(again.Recover(ledger_.get(), state).code(), absl::StatusCode::kDataLoss);
  state.snapshots.clear();
  EXPECT_EQ(again.Recover(ledger_.get(), state).code(), absl::StatusCode::kDataLoss);
}

// Keeps one value of each of the two tensors, which have four and eight.
constexpr char kOneOfEach[] = "topk(k=1,block=4096)|levels(bits=1)|gaps|zstd(1)";

TEST_F(AnchorKeeperTest, WhatAnUpdateEncodedAnewDoesNotSayIsCarriedAndFlushedAtTheEnd) {
  CommitRecord record = CommitRoundOf(1, false, kOneOfEach);
  std::vector<float> anchor(12, 0.0f), carried(12, 0.5f);
  anchor[0] = anchor[4] = -0.5f;
  carried[0] = carried[4] = 0;
  EXPECT_EQ(keeper_.anchor(), anchor);
  EXPECT_EQ(*keeper_.residual(), carried);
  EXPECT_EQ(record.residual_square_sum(), 10 * 0.25);
  CommitRoundOf(2, false, kOneOfEach);
  anchor[1] = anchor[5] = -1.0f;  // the first of those that wait longest
  EXPECT_EQ(keeper_.anchor(), anchor);
  record = CommitRoundOf(3, false, kFlushUpdate);
  EXPECT_EQ(keeper_.anchor(), std::vector<float>(12, -1.5f));
  EXPECT_EQ(*keeper_.residual(), std::vector<float>(12, 0.0f));
  EXPECT_EQ(record.residual_square_sum(), 0);
}

TEST_F(AnchorKeeperTest, WhatIsCarriedIsThereAfterARestart) {
  CommitRoundOf(1, false, kOneOfEach);
  CommitRoundOf(2, false, kOneOfEach);
  AnchorKeeper again(*table_, ops_.get());
  ASSERT_TRUE(again.Recover(ledger_.get(), *ledger_->Load()).ok());
  EXPECT_EQ(*again.residual(), *keeper_.residual());
  EXPECT_FALSE(again.lost_residual().has_value());
  EXPECT_EQ(again.AnchorDigest(), keeper_.AnchorDigest());
}

TEST_F(AnchorKeeperTest, AResidualThatIsMissingOrDamagedIsForfeitedAndSaidOnce) {
  CommitRoundOf(1, false, kOneOfEach);
  const CommitRecord last = CommitRoundOf(2, false, kOneOfEach);
  DamagedLedger damaged(disk_, table_, 2, RESIDUAL);
  AnchorKeeper again(*table_, ops_.get());
  LedgerState state = *damaged.Load();
  ASSERT_TRUE(again.Recover(&damaged, state).ok());
  EXPECT_EQ(again.residual(), nullptr);
  ASSERT_TRUE(again.lost_residual().has_value());
  EXPECT_EQ(again.lost_residual()->round, 2);
  EXPECT_EQ(again.lost_residual()->square_sum, last.residual_square_sum());
  EXPECT_EQ(again.lost_residual()->why, "its digest is not the one committed");
  EXPECT_EQ(again.AnchorDigest(), keeper_.AnchorDigest());
  // Once the ledger has it, it stays so, even if the file turns up again.
  EventRecord event;
  event.set_kind(EventRecord::HUB_FORFEITED);
  event.set_round(2);
  state.events.push_back(event);
  MemLedger whole(disk_, table_);
  ASSERT_TRUE(again.Recover(&whole, state).ok());
  EXPECT_EQ(again.residual(), nullptr);
  EXPECT_FALSE(again.lost_residual().has_value());
}

TEST_F(AnchorKeeperTest, AFrameThatIsNoneIsRefused) {
  EXPECT_FALSE(keeper_.Check(kSpec, "nonsense").ok());
  EXPECT_FALSE(keeper_.Check("no codec", "").ok());
}

}  // namespace
}  // namespace isthmus
