#include "daemon/store/packed_blob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "daemon/base/random.h"

namespace isthmus {
namespace {

// Small normal-looking weights behind a header, as a snapshot has them.
std::string WeightsOf(int64_t bytes) {
  std::string out(static_cast<size_t>(bytes), '\0');
  for (size_t i = 0; i + 4 <= out.size(); i += 4) {
    const float value =
        0.02f * (static_cast<float>(RandomAt(1, 2, static_cast<int64_t>(i)) % 65536) / 65536 - 0.5f);
    std::memcpy(&out[i], &value, 4);
  }
  return out;
}

std::string Packed(absl::string_view plain, size_t portion) {
  std::string out;
  const BlobPacker::Sink sink = [&out](absl::string_view piece) {
    out.append(piece.data(), piece.size());
    return absl::OkStatus();
  };
  BlobPacker packer(static_cast<int64_t>(plain.size()), 3, sink);
  for (size_t at = 0; at < plain.size(); at += portion) {
    EXPECT_EQ(packer.Add(plain.substr(at, portion)), absl::OkStatus());
  }
  EXPECT_EQ(packer.Finish(), absl::OkStatus());
  return out;
}

TEST(PackedBlobTest, BytesComeBackWhateverTheirNumberAndPortions) {
  for (const int64_t bytes : {0, 1, 3, 4, 5, 4096, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3'000'001}) {
    const std::string plain = WeightsOf(bytes);
    const std::string packed = Packed(plain, 70'000);
    EXPECT_EQ(packed, Packed(plain, 5'000'000)) << "portions make no difference";
    const auto back = UnpackBlob(packed, bytes);
    ASSERT_EQ(back.status(), absl::OkStatus()) << bytes;
    EXPECT_TRUE(*back == plain) << bytes;
  }
}

TEST(PackedBlobTest, WeightsTakeFewerBytes) {
  const std::string plain = WeightsOf(4'000'000);
  EXPECT_LT(Packed(plain, plain.size()).size(), 0.93 * plain.size());
}

TEST(PackedBlobTest, AnotherLengthThanExpectedIsRefusedBeforeAnythingIsMade) {
  const std::string packed = Packed(WeightsOf(100), 100);
  EXPECT_EQ(UnpackBlob(packed, 101).status().code(), absl::StatusCode::kInvalidArgument);
  std::string huge = packed;
  const int64_t claimed = int64_t{1} << 60;
  std::memcpy(&huge[5], &claimed, sizeof claimed);
  EXPECT_EQ(UnpackBlob(huge, claimed).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(PackedBlobTest, EveryCutAndEveryFlippedBitIsFound) {
  const std::string plain = WeightsOf(200);
  const std::string packed = Packed(plain, 200);
  for (size_t cut = 0; cut < packed.size(); ++cut) {
    EXPECT_FALSE(UnpackBlob(packed.substr(0, cut), 200).ok()) << cut;
  }
  for (size_t bit = 0; bit < 8 * packed.size(); ++bit) {
    std::string flipped = packed;
    flipped[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    const auto back = UnpackBlob(flipped, 200);
    // A bit that zstd does not look at changes nothing.
    EXPECT_TRUE(!back.ok() || *back == plain) << bit;
  }
  EXPECT_FALSE(UnpackBlob(packed + "x", 200).ok());
}

TEST(PackedBlobTest, WhatWasPromisedMustBeGiven) {
  const BlobPacker::Sink sink = [](absl::string_view) { return absl::OkStatus(); };
  BlobPacker packer(10, 3, sink);
  EXPECT_EQ(packer.Add("abc"), absl::OkStatus());
  EXPECT_EQ(packer.Finish().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(PackedBlobTest, ASinksFailureIsHandedOn) {
  const BlobPacker::Sink sink = [](absl::string_view) { return absl::ResourceExhaustedError("full"); };
  BlobPacker packer(2 << 20, 3, sink);
  EXPECT_EQ(packer.Add(std::string(2 << 20, 'x')).code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace isthmus
