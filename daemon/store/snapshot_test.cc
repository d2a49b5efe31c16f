#include "daemon/store/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/store/blobs.h"
#include "daemon/store/safetensors.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

TensorTable SmallTable() {
  return TensorTable::FromTensors({{"weight", {2, 3}, TensorInit::kNormal, 0.02, true}, {"bias", {2}}})
      .value();
}

struct Made {
  SnapshotInfo info;
  SnapshotValues values;
};

Made MakeSnapshot(const TensorTable& table, bool has_momentum) {
  Made made;
  made.values.anchor = {0.5f, -1.25f, 3, 4, 1e-30f, 6, 7, -0.0f};
  if (has_momentum) made.values.momentum = {8, 7, 6, 5, 4, 3, 2, 1};
  made.info.set_round(12);
  made.info.set_schedule_step(360);
  made.info.set_outer_rate_bits(0x3FC00000);
  made.info.set_outer_momentum_bits(has_momentum ? 0x3F000000 : 0);
  const StateStamp stamp{12, 360, made.info.outer_rate_bits(), made.info.outer_momentum_bits()};
  made.info.set_state_digest(table.StateDigestOf(stamp, made.values.anchor, made.values.momentum).ToBytes());
  return made;
}

TEST(SnapshotTest, ASnapshotReadsBackBitForBitWithAndWithoutMomentum) {
  const TensorTable table = SmallTable();
  for (bool has_momentum : {false, true}) {
    const Made made = MakeSnapshot(table, has_momentum);
    const std::string bytes = EncodeSnapshot(table, made.info, made.values).value();
    EXPECT_EQ(SnapshotBytes(table, made.info, made.values), static_cast<int64_t>(bytes.size()));
    const absl::StatusOr<Snapshot> back = DecodeSnapshot(table, bytes);
    ASSERT_EQ(back.status(), absl::OkStatus());
    EXPECT_EQ(back->values.anchor, made.values.anchor);
    EXPECT_TRUE(std::signbit(back->values.anchor[7]));
    EXPECT_EQ(back->values.momentum, made.values.momentum);
    SnapshotInfo expected = made.info;
    expected.set_bytes(static_cast<int64_t>(bytes.size()));
    expected.set_has_momentum(has_momentum);
    EXPECT_EQ(back->info.SerializeAsString(), expected.SerializeAsString());
  }
}

TEST(SnapshotTest, TensorsKeepTheirNamesAndMomentumGetsAPrefix) {
  const TensorTable table = SmallTable();
  const Made made = MakeSnapshot(table, true);
  const std::string bytes = EncodeSnapshot(table, made.info, made.values).value();
  const auto header = ReadSafetensorsHeader(BorrowedBlob(bytes), 1 << 20);
  ASSERT_EQ(header.status(), absl::OkStatus());
  std::vector<std::string> names;
  for (const SafetensorsTensor& tensor : header->tensors) names.push_back(tensor.name);
  EXPECT_THAT(names, ::testing::ElementsAre("weight", "bias", "momentum.weight", "momentum.bias"));
  EXPECT_EQ(header->metadata.at("round"), "12");
  EXPECT_EQ(header->metadata.at("format"), "pt");
}

TEST(SnapshotTest, AFlippedBitInTheValuesIsFoundByTheStateDigest) {
  const TensorTable table = SmallTable();
  const Made made = MakeSnapshot(table, false);
  std::string bytes = EncodeSnapshot(table, made.info, made.values).value();
  bytes[bytes.size() - 5] ^= 1;
  const auto back = DecodeSnapshot(table, bytes);
  EXPECT_EQ(back.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(back.status().message()), HasSubstr("snapshot of round 12 is damaged"));
}

TEST(SnapshotTest, ASnapshotOfAnotherModelIsRefused) {
  const TensorTable table = SmallTable();
  const TensorTable other = TensorTable::FromTensors({{"weight", {3, 2}}, {"bias", {2}}}).value();
  const Made made = MakeSnapshot(table, false);
  const auto back = DecodeSnapshot(other, EncodeSnapshot(table, made.info, made.values).value());
  EXPECT_EQ(back.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(back.status().message()), HasSubstr("snapshot of another model: layout_digest"));
}

TEST(SnapshotTest, EveryTruncationAndEveryFlippedBitIsSurvivedAndNeverGivesOtherValues) {
  const TensorTable table = SmallTable();
  const Made made = MakeSnapshot(table, true);
  const std::string good = EncodeSnapshot(table, made.info, made.values).value();
  for (size_t n = 0; n < good.size(); ++n) {
    EXPECT_FALSE(DecodeSnapshot(table, absl::string_view(good).substr(0, n)).ok()) << n;
  }
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      const auto back = DecodeSnapshot(table, bad);
      if (!back.ok() || back->info.state_digest() != made.info.state_digest()) continue;
      EXPECT_EQ(back->values.anchor, made.values.anchor) << i;
      EXPECT_EQ(back->values.momentum, made.values.momentum) << i;
    }
  }
}

TEST(SnapshotTest, WritingEndsAtTheSinksFirstFailure) {
  const TensorTable table = SmallTable();
  const Made made = MakeSnapshot(table, true);
  int pieces = 0;
  const absl::Status status = WriteSnapshot(table, made.info, made.values, [&](absl::string_view) {
    return ++pieces == 2 ? absl::ResourceExhaustedError("full") : absl::OkStatus();
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(pieces, 2);
}

TEST(SnapshotTest, ACheckpointIsReadBackAsWeights) {
  const TensorTable table = SmallTable();
  const std::vector<float> values = MakeSnapshot(table, false).values.anchor;
  std::string bytes;
  ASSERT_EQ(WriteCheckpoint(table, values, {{"run", "demo"}},
                            [&](absl::string_view piece) {
                              absl::StrAppend(&bytes, piece);
                              return absl::OkStatus();
                            }),
            absl::OkStatus());
  EXPECT_EQ(ReadWeights(table, BorrowedBlob(bytes)).value(), values);
  const auto header = ReadSafetensorsHeader(BorrowedBlob(bytes), 1 << 20);
  EXPECT_EQ(header->metadata.at("run"), "demo");
  EXPECT_EQ(header->metadata.at("format"), "pt");
  EXPECT_FALSE(DecodeSnapshot(table, bytes).ok()) << "a checkpoint is not a snapshot";
}

TEST(SnapshotTest, WeightsInBrainFloatAreWidenedAndForeignTensorsIgnored) {
  const TensorTable table = TensorTable::FromTensors({{"w", {2}}}).value();
  const std::string bytes =
      EncodeSafetensorsHeader({}, {{"extra", "I64", {1}, 0, 8}, {"w", "BF16", {2}, 8, 12}}) +
      std::string(8, 'e') + std::string("\x80\x3F\x20\xC0", 4);
  EXPECT_EQ(ReadWeights(table, BorrowedBlob(bytes)).value(), (std::vector<float>{1.0f, -2.5f}));
}

TEST(SnapshotTest, WeightsThatDoNotFitTheModelAreRefusedByName) {
  const TensorTable table = TensorTable::FromTensors({{"w", {2}}}).value();
  const auto read = [&](const std::string& bytes) {
    return std::string(ReadWeights(table, BorrowedBlob(bytes)).status().message());
  };
  EXPECT_THAT(read(EncodeSafetensorsHeader({}, {{"v", "F32", {2}, 0, 8}}) + std::string(8, 'v')),
              HasSubstr("tensor w is missing"));
  EXPECT_THAT(read(EncodeSafetensorsHeader({}, {{"w", "F32", {1, 2}, 0, 8}}) + std::string(8, 'v')),
              HasSubstr("tensor w has shape [1,2], the model wants [2]"));
  EXPECT_THAT(read(EncodeSafetensorsHeader({}, {{"w", "F16", {2}, 0, 4}}) + std::string(4, 'v')),
              HasSubstr("tensor w has type F16, only F32 and BF16 are read"));
}

}  // namespace
}  // namespace isthmus
