// The replica with a separate residual: what each outcome, reset and move does to it (ROUNDS §5).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "daemon/worker/replica_fixture.h"

namespace isthmus {
namespace {

using ::testing::ElementsAre;

// Two tensors of 2 and 4 values; a frame has the largest difference of each.
class SeparateResidualTest : public ReplicaTest {
 protected:
  SeparateResidualTest() : ReplicaTest(FeedbackForm::kSeparate) {
    codec_ = *ParseCodecSpec("topk(k=1,block=4096)|levels(bits=1)|gaps|zstd(1)");
  }

  // What a step would do.
  void Move(const std::vector<float>& by) {
    for (int64_t i = 0; i < kValues; ++i) p()[i] -= by[i];
  }

  std::vector<float> Residual() { return {replica_->residual().begin(), replica_->residual().end()}; }

  // The commit of `frame` alone, as its owner gets it; `refused` tensors are left out.
  CommittedStep OwnStep(const EncodedFrame& frame, std::vector<int> refused = {}) {
    WeightedFrame weighted{frame.decoded.get(), 64, {}};
    for (int t : refused) weighted.refused.push_back(t);
    CommittedStep step;
    step.stamp = {1, 10, 0, 0};
    const Layout& layout = replica_->table().layout();
    step.update = EncodeUpdate(layout, *ops_->Sum(layout, {&weighted, 1}, Averaging::kPeers));
    step.own = frame.decoded.get();
    step.own_index = 0;
    return step;
  }
};

const std::vector<float> kMoved = {0.25f, 0.125f, 0.5f, -0.25f, 0, 0.125f};

TEST_F(SeparateResidualTest, AFrameLeavesParametersAtTheAnchorAndTheRestInTheResidual) {
  Move(kMoved);
  const EncodedFrame frame = Encode();
  EXPECT_EQ(Parameters(), Anchor());
  EXPECT_THAT(Residual(), ElementsAre(0, 0.125f, 0, -0.25f, 0, 0.125f));
  EXPECT_EQ(frame.base_digest, replica_->AnchorDigest());
  EXPECT_THAT(frame.decoded->tensors[1].positions, ElementsAre(0));
  EXPECT_EQ(replica_->CarriedSquareSum(nullptr), 0.125 * 0.125 * 2 + 0.0625);
}

TEST_F(SeparateResidualTest, ACommitShiftsParametersAndKeepsStepsDoneMeanwhile) {
  Move(kMoved);
  const EncodedFrame frame = Encode();
  Move({0, 0.0625f, 0.125f, 0, 0, 0});
  ASSERT_TRUE(replica_->Apply(OwnStep(frame)).ok());
  EXPECT_EQ(Anchor(), (std::vector<float>{0.25f, 0.5f, 0, 0.5f, 0.5f, 0.5f}));
  EXPECT_EQ(Parameters(), (std::vector<float>{0.25f, 0.4375f, -0.125f, 0.5f, 0.5f, 0.5f}));
  EXPECT_THAT(Residual(), ElementsAre(0, 0.125f, 0, -0.25f, 0, 0.125f));
}

TEST_F(SeparateResidualTest, TheNextFrameSpeaksForTheResidualAndTheNewSteps) {
  Move(kMoved);
  const EncodedFrame first = Encode();
  ASSERT_TRUE(replica_->Apply(OwnStep(first)).ok());
  Move({0.0625f, 0, 0, 0.0625f, 0, 0});
  const EncodedFrame second = Encode();
  EXPECT_THAT(second.decoded->tensors[0].positions, ElementsAre(1));
  EXPECT_THAT(second.decoded->tensors[1].positions, ElementsAre(1));
  EXPECT_EQ(DecodedValue(second.decoded->tensors[1].mantissas[0], second.decoded->tensors[1].exponent),
            -0.1875f);
  EXPECT_THAT(Residual(), ElementsAre(0.0625f, 0, 0, 0, 0, 0.125f));
}

TEST_F(SeparateResidualTest, ATensorLeftOutForItsOwnFrameComesBack) {
  Move(kMoved);
  const EncodedFrame frame = Encode();
  ASSERT_TRUE(replica_->Apply(OwnStep(frame, {1})).ok());
  EXPECT_EQ(Anchor()[2], 0.5f);
  EXPECT_THAT(Residual(), ElementsAre(0, 0.125f, 0.5f, -0.25f, 0, 0.125f));
}

TEST_F(SeparateResidualTest, AFrameThatWasNotCommittedComesBackAfterAnothersCommit) {
  Move(kMoved);
  const EncodedFrame frame = Encode();
  CommittedStep step = OwnStep(frame);  // another site's same bytes, as it were
  step.own = nullptr;
  step.own_index = -1;
  ASSERT_TRUE(replica_->Apply(step).ok());
  replica_->Return(*frame.decoded);
  EXPECT_EQ(Residual(), kMoved);
  EXPECT_EQ(Parameters(), Anchor());
}

TEST_F(SeparateResidualTest, ACommitAfterAResetAddsNothingBack) {
  Move(kMoved);
  const EncodedFrame frame = Encode();
  EXPECT_EQ(replica_->Reset(frame.decoded.get()), 0.125 * 0.125 * 2 + 0.0625);
  CommittedStep step = OwnStep(frame, {1});
  step.own = nullptr;  // it has no right any more
  ASSERT_TRUE(replica_->Apply(step).ok());
  EXPECT_EQ(Residual(), std::vector<float>(kValues, 0));
  // What the ledger left out of it is forfeited then.
  OwnFrame lost{frame.decoded.get(), {false, true}};
  EXPECT_EQ(replica_->ForfeitFrame(lost), 0.25);
  EXPECT_THAT(replica_->forfeited(), ElementsAre(0, 0.125, 0.5, -0.25, 0, 0.125));
}

TEST_F(SeparateResidualTest, NanIsRefusedBeforeAnythingMovesAndAResetForfeitsTheResidual) {
  Move(kMoved);
  Encode();
  p()[3] = std::numeric_limits<float>::quiet_NaN();
  p()[1] -= 0.5f;
  const std::vector<float> before = Residual();
  double decayed = 7;
  EXPECT_EQ(replica_->Encode(*codec_, 0.5, &decayed).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(decayed, 0);
  EXPECT_EQ(Residual(), before);
  EXPECT_EQ(p()[1], 0);
  EXPECT_EQ(replica_->Reset(nullptr), 0.625 * 0.625 + 0.125 * 0.125);
  EXPECT_EQ(Residual(), std::vector<float>(kValues, 0));
  EXPECT_EQ(Parameters(), Anchor());
}

TEST_F(SeparateResidualTest, CatchingUpBySnapshotKeepsTheResidualAndTakesBackWhatWasLeftOut) {
  Move(kMoved);
  const EncodedFrame frame = Encode();
  Move({0, 0, 0, 0, 0, 0.0625f});
  OwnFrame own{frame.decoded.get(), {true, false}};
  ASSERT_TRUE(replica_->MoveTo({7, 70, 0, 0}, std::vector<float>(kValues, 1.0f), {}, own).ok());
  EXPECT_EQ(Parameters(), (std::vector<float>{1, 1, 1, 1, 1, 0.9375f}));
  EXPECT_THAT(Residual(), ElementsAre(0, 0.125f, 0.5f, -0.25f, 0, 0.125f));
}

TEST_F(SeparateResidualTest, AResyncForfeitsTheResidualAndWhatTheCommitLeftOut) {
  Move(kMoved);
  const EncodedFrame frame = Encode();
  Move({0, 0, 0, 0, 1, 0});
  OwnFrame own{frame.decoded.get(), {true, false}};
  const absl::StatusOr<double> forfeited =
      replica_->Resync({3, 30, 0, 0}, std::vector<float>(kValues, 0.75f), {}, own);
  ASSERT_TRUE(forfeited.ok()) << forfeited.status();
  EXPECT_THAT(replica_->forfeited(), ElementsAre(0, 0.125, 0.5, -0.25, 1, 0.125));
  EXPECT_EQ(*forfeited, 0.125 * 0.125 * 2 + 0.25 + 0.0625 + 1);
  EXPECT_EQ(Residual(), std::vector<float>(kValues, 0));
  EXPECT_EQ(Parameters(), std::vector<float>(kValues, 0.75f));
}

TEST_F(SeparateResidualTest, DecayGivesUpItsShareOfTheResidualOnly) {
  Move(kMoved);
  Encode();
  Move({0, 0, 1, 0, 0, 0});
  double decayed = 0;
  ASSERT_TRUE(replica_->Encode(*codec_, 0.5, &decayed).ok());
  EXPECT_EQ(decayed, 0.0625 * 0.0625 * 2 + 0.125 * 0.125);
  EXPECT_THAT(replica_->forfeited(), ElementsAre(0, 0.0625, 0, -0.125, 0, 0.0625));
  EXPECT_THAT(Residual(), ElementsAre(0, 0, 0, -0.125f, 0, 0.0625f));
}

TEST_F(SeparateResidualTest, TheDenseLastRoundFlushesTheResidual) {
  Move(kMoved);
  const EncodedFrame first = Encode();
  ASSERT_TRUE(replica_->Apply(OwnStep(first)).ok());
  codec_ = *ParseCodecSpec("dense(bits=24)|zstd(1)");
  Move({0, 0, 0, 0, 0, 0.0625f});
  const EncodedFrame last = Encode();
  EXPECT_EQ(Residual(), std::vector<float>(kValues, 0));
  ASSERT_TRUE(replica_->Apply(OwnStep(last)).ok());
  EXPECT_EQ(Anchor(), (std::vector<float>{0.25f, 0.375f, 0, 0.75f, 0.5f, 0.3125f}));
  EXPECT_EQ(Parameters(), Anchor());
  EXPECT_EQ(replica_->CarriedSquareSum(nullptr), 0);
}

}  // namespace
}  // namespace isthmus
