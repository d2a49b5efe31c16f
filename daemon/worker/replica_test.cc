#include "daemon/worker/replica.h"

#include <cmath>
#include <limits>

#include "daemon/worker/replica_fixture.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

TEST_F(ReplicaTest, ASnapshotIsWhereParametersStart) {
  EXPECT_EQ(Parameters(), std::vector<float>(kValues, 0.5f));
  EXPECT_EQ(replica_->CarriedSquareSum(nullptr), 0);
  EXPECT_FALSE(replica_->Begin({}, std::vector<float>(3), {}).ok());
  EXPECT_FALSE(replica_->Begin({}, std::vector<float>(kValues), std::vector<float>(2)).ok());
}

TEST_F(ReplicaTest, ALosslessFrameOfItsOwnLandsExactlyOnTheNewAnchor) {
  p()[1] = 0.25f;
  p()[4] = 0.75f;
  const EncodedFrame frame = Encode();
  EXPECT_EQ(frame.digest, DigestOf(absl::string_view(*frame.bytes)));
  EXPECT_EQ(frame.base_digest, replica_->AnchorDigest());
  CommittedStep step = StepOf({frame.decoded.get()});
  step.own = frame.decoded.get();
  step.own_index = 0;
  const absl::StatusOr<Digest> digest = replica_->Apply(step);
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_EQ(Anchor(), (std::vector<float>{0.5f, 0.25f, 0.5f, 0.5f, 0.75f, 0.5f}));
  EXPECT_EQ(Parameters(), Anchor());
  EXPECT_EQ(*digest, replica_->AnchorDigest());
  EXPECT_EQ(replica_->stamp().round, 1);
}

TEST_F(ReplicaTest, WhatACommitLeftOutStaysCarriedWhileParametersShiftWithTheAnchor) {
  p()[1] = 0.25f;
  const EncodedFrame frame = Encode();
  CommittedStep step = StepOf({frame.decoded.get()});  // another site's frame, as it were
  ASSERT_TRUE(replica_->Apply(step).ok());
  EXPECT_EQ(Anchor()[1], 0.25f);
  EXPECT_EQ(Parameters()[1], 0.0f);
  EXPECT_EQ(replica_->CarriedSquareSum(nullptr), 0.0625);
}

TEST_F(ReplicaTest, StepsDoneWhileAFrameTravelsAreTheNextOnes) {
  p()[2] = 0.25f;
  const EncodedFrame frame = Encode();
  p()[2] -= 0.125f;
  CommittedStep step = StepOf({frame.decoded.get()});
  step.own = frame.decoded.get();
  step.own_index = 0;
  ASSERT_TRUE(replica_->Apply(step).ok());
  EXPECT_EQ(Anchor()[2], 0.25f);
  EXPECT_EQ(Parameters()[2], 0.125f);
}

TEST_F(ReplicaTest, ATensorLeftOutForItsOwnFrameStaysCarried) {
  p()[0] = 0.25f;
  p()[3] = 0.25f;
  const EncodedFrame frame = Encode();
  const Layout& layout = replica_->table().layout();
  std::vector<WeightedFrame> weighted = {{frame.decoded.get(), 64, {1}}};
  CommittedStep step;
  step.stamp = {1, 10, 0, 0};
  step.update = EncodeUpdate(layout, *ops_->Sum(layout, weighted, Averaging::kPeers));
  step.own = frame.decoded.get();
  step.own_index = 0;
  ASSERT_TRUE(replica_->Apply(step).ok());
  EXPECT_EQ(Parameters()[0], Anchor()[0]);
  EXPECT_EQ(Anchor()[3], 0.5f);
  EXPECT_EQ(Parameters()[3], 0.25f);
}

TEST_F(ReplicaTest, MovingToANewerAnchorKeepsWhatIsCarriedAndTakesOffWhatWasCommitted) {
  p()[0] = 0.25f;
  p()[5] = 0.375f;
  const EncodedFrame frame = Encode();
  p()[5] -= 0.0625f;
  OwnFrame own;
  own.frame = frame.decoded.get();
  own.included = {true, false};
  ASSERT_TRUE(replica_->MoveTo({7, 70, 0, 0}, std::vector<float>(kValues, 1.0f), {}, own).ok());
  EXPECT_EQ(replica_->stamp().round, 7);
  EXPECT_EQ(Parameters(), (std::vector<float>{1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 0.8125f}));
}

TEST_F(ReplicaTest, AResyncForfeitsWhatIsCarriedLessThePendingFrame) {
  p()[0] = 0.25f;
  const EncodedFrame frame = Encode();
  p()[0] -= 0.125f;
  p()[3] += 0.5f;
  OwnFrame pending;
  pending.frame = frame.decoded.get();
  const absl::StatusOr<double> forfeited =
      replica_->Resync({3, 30, 0, 0}, std::vector<float>(kValues, 0.75f), {}, pending);
  ASSERT_TRUE(forfeited.ok()) << forfeited.status();
  EXPECT_EQ(*forfeited, 0.125 * 0.125 + 0.25);
  EXPECT_EQ(Parameters(), std::vector<float>(kValues, 0.75f));
  EXPECT_EQ(replica_->forfeited(), (std::vector<double>{0.125, 0, 0, -0.5, 0, 0}));
}

TEST_F(ReplicaTest, AResetAfterNanForfeitsWhatIsFiniteAndAFrameRefusedLaterTheRest) {
  p()[0] = 0.25f;
  const EncodedFrame frame = Encode();
  p()[1] = std::numeric_limits<float>::quiet_NaN();
  p()[2] = 0.0f;
  EXPECT_EQ(replica_->Reset(frame.decoded.get()), 0.25);
  EXPECT_EQ(Parameters(), Anchor());
  EXPECT_TRUE(std::isnan(replica_->forfeited()[1]));
  EXPECT_EQ(replica_->forfeited()[0], 0);
  OwnFrame lost;
  lost.frame = frame.decoded.get();
  lost.included = {false, true};
  EXPECT_EQ(replica_->ForfeitFrame(lost), 0);
  lost.included = {true, true};
  EXPECT_EQ(replica_->ForfeitFrame(lost), 0.0625);
  EXPECT_EQ(replica_->forfeited()[0], 0.25);
}

TEST_F(ReplicaTest, NanIsNamedInsteadOfEncoded) {
  p()[3] = std::numeric_limits<float>::infinity();
  double decayed = 0;
  const absl::Status status = replica_->Encode(*codec_, 1, &decayed).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ReplicaTest, CarryDecayGivesUpItsShareAndSaysHowMuch) {
  p()[4] = 0.0f;
  double decayed = 0;
  ASSERT_TRUE(replica_->Encode(*codec_, 0.5, &decayed).ok());
  EXPECT_EQ(p()[4], 0.25f);
  EXPECT_EQ(decayed, 0.0625);
  EXPECT_EQ(replica_->forfeited()[4], 0.25);
}

TEST_F(ReplicaTest, AFlippedBitOfTheAnchorShowsInItsDigest) {
  const Digest before = replica_->AnchorDigest();
  replica_->FlipAnchorBit(7);
  EXPECT_NE(replica_->AnchorDigest(), before);
  replica_->FlipAnchorBit(1);
  EXPECT_EQ(replica_->AnchorDigest(), before);
}

}  // namespace
}  // namespace isthmus
