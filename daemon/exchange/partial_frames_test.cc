#include "daemon/exchange/partial_frames.h"

#include "daemon/base/digest.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

ContributionHeader HeaderOf(const std::string& frame, const std::string& site = "alpha",
                            int64_t incarnation = 1) {
  ContributionHeader header;
  header.mutable_life()->set_site(site);
  header.mutable_life()->set_incarnation(incarnation);
  header.set_frame_bytes(frame.size());
  header.set_frame_digest(DigestOf(frame).ToBytes());
  return header;
}

TEST(PartialFrames, HandsOverWhatArrivedInPieces) {
  PartialFrames frames(100);
  const std::string frame = "0123456789";
  const ContributionHeader header = HeaderOf(frame);
  EXPECT_EQ(frames.Offer(header)->held_bytes, 0);
  EXPECT_TRUE(frames.Append(header, 0, "0123").ok());
  EXPECT_EQ(frames.HeldOf(header), 4);
  EXPECT_EQ(frames.Take(header).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(frames.Append(header, 4, "456789").ok());
  EXPECT_EQ(frames.held_bytes(), 10);
  absl::StatusOr<SharedBytes> taken = frames.Take(header);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(**taken, frame);
  EXPECT_EQ(frames.held_bytes(), 0);
  EXPECT_EQ(frames.HeldOf(header), 0);
}

TEST(PartialFrames, GoesOnWhereABrokenUploadStopped) {
  PartialFrames frames(100);
  const ContributionHeader header = HeaderOf("0123456789");
  const absl::StatusOr<PartialFrames::Offered> first = frames.Offer(header);
  EXPECT_EQ(first->held_bytes, 0);
  EXPECT_TRUE(frames.Append(header, 0, "01234").ok());
  frames.Release(header, first->attempt);
  EXPECT_EQ(frames.Offer(header)->held_bytes, 5);
  EXPECT_TRUE(frames.Append(header, 3, "3456").ok()) << "bytes that are held already are passed over";
  EXPECT_EQ(frames.HeldOf(header), 7);
  EXPECT_TRUE(frames.Append(header, 0, "012").ok());
  EXPECT_EQ(frames.HeldOf(header), 7);
}

TEST(PartialFrames, DropsAFrameWhoseDigestIsWrong) {
  PartialFrames frames(100);
  const ContributionHeader header = HeaderOf("0123");
  ASSERT_TRUE(frames.Offer(header).ok());
  ASSERT_TRUE(frames.Append(header, 0, "0124").ok());
  EXPECT_TRUE(absl::IsDataLoss(frames.Take(header).status()));
  EXPECT_EQ(frames.held_bytes(), 0);
  EXPECT_EQ(frames.Offer(header)->held_bytes, 0);
}

TEST(PartialFrames, RefusesWhatNoFrameCanBe) {
  PartialFrames frames(100);
  ContributionHeader header = HeaderOf("0123");
  header.set_frame_bytes(-1);
  EXPECT_TRUE(absl::IsInvalidArgument(frames.Offer(header).status()));
  header.set_frame_bytes(101);
  EXPECT_TRUE(absl::IsInvalidArgument(frames.Offer(header).status()));
  header.set_frame_bytes(4);
  header.set_frame_digest("short");
  EXPECT_TRUE(absl::IsInvalidArgument(frames.Offer(header).status()));
}

TEST(PartialFrames, RefusesGapsOverrunsAndWhatWasNotOffered) {
  PartialFrames frames(100);
  const ContributionHeader header = HeaderOf("0123");
  EXPECT_TRUE(absl::IsNotFound(frames.Append(header, 0, "0")));
  ASSERT_TRUE(frames.Offer(header).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(frames.Append(header, 1, "1")));
  EXPECT_TRUE(absl::IsInvalidArgument(frames.Append(header, -1, "1")));
  EXPECT_TRUE(absl::IsInvalidArgument(frames.Append(header, 0, "01234")));
  EXPECT_EQ(frames.held_bytes(), 0);
}

TEST(PartialFrames, ANewLifeDropsWhatItsEarlierLivesLeft) {
  PartialFrames frames(100);
  const ContributionHeader old_life = HeaderOf("0123456789", "alpha", 1);
  const ContributionHeader other_site = HeaderOf("0123456789", "beta", 1);
  ASSERT_TRUE(frames.Offer(old_life).ok());
  ASSERT_TRUE(frames.Append(old_life, 0, "0123").ok());
  ASSERT_TRUE(frames.Offer(other_site).ok());
  ASSERT_TRUE(frames.Append(other_site, 0, "0123").ok());
  EXPECT_EQ(frames.Offer(HeaderOf("0123456789", "alpha", 2))->held_bytes, 0);
  EXPECT_EQ(frames.HeldOf(old_life), 0);
  EXPECT_EQ(frames.HeldOf(other_site), 4);
  EXPECT_EQ(frames.held_bytes(), 4);
}

TEST(PartialFrames, DropsTheOldestWithoutAnAttemptForWantOfSpace) {
  PartialFrames frames(10);
  const ContributionHeader first = HeaderOf("01234567", "alpha");
  const ContributionHeader second = HeaderOf("89abcdef", "beta");
  const absl::StatusOr<PartialFrames::Offered> offered = frames.Offer(first);
  ASSERT_TRUE(frames.Append(first, 0, "01234567").ok());
  ASSERT_TRUE(frames.Offer(second).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(frames.Append(second, 0, "89abcdef"))) << "the first is under way";
  frames.Release(first, offered->attempt);
  EXPECT_TRUE(frames.Append(second, 0, "89abcdef").ok());
  EXPECT_EQ(frames.HeldOf(first), 0);
  EXPECT_EQ(frames.held_bytes(), 8);
}

TEST(PartialFrames, ALateReleaseIsNotFeltByANewerAttempt) {
  PartialFrames frames(100);
  const ContributionHeader header = HeaderOf("0123");
  const int64_t old_attempt = frames.Offer(header)->attempt;
  ASSERT_TRUE(frames.Append(header, 0, "0124").ok());
  ASSERT_TRUE(absl::IsDataLoss(frames.Take(header).status()));
  ASSERT_TRUE(frames.Offer(header).ok());
  frames.Release(header, old_attempt);
  EXPECT_TRUE(frames.Append(header, 0, "0123").ok());
}

TEST(PartialFrames, AnotherLengthUnderTheSameDigestStartsOver) {
  PartialFrames frames(100);
  ContributionHeader header = HeaderOf("0123456789");
  ASSERT_TRUE(frames.Offer(header).ok());
  ASSERT_TRUE(frames.Append(header, 0, "0123").ok());
  header.set_frame_bytes(3);
  EXPECT_EQ(frames.Offer(header)->held_bytes, 0);
  EXPECT_EQ(frames.held_bytes(), 0);
}

TEST(PartialFrames, TooManyFramesUnderWayAreRefused) {
  PartialFrames frames(100);
  for (int i = 0; i < 4096; ++i) {
    ASSERT_TRUE(frames.Offer(HeaderOf("x", "site" + std::to_string(i))).ok());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(frames.Offer(HeaderOf("x", "one more")).status()));
  frames.Release(HeaderOf("x", "site7"), 8);
  EXPECT_TRUE(frames.Offer(HeaderOf("x", "one more")).ok());
}

}  // namespace
}  // namespace isthmus
