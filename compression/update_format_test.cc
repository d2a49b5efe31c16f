#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "compression/codec.h"
#include "compression/reference_sum.h"
#include "compression/test_random.h"
#include "compression/update.h"

namespace isthmus {
namespace {

Update MakeUpdate(const Layout& layout, Averaging averaging, std::vector<const char*> specs) {
  TestRandom random(13);
  std::vector<DecodedFrame> decoded;
  for (const char* spec : specs) {
    const auto codec = std::move(ParseCodecSpec(spec)).value();
    const std::vector<float> zero(layout.total());
    decoded.push_back(
        *codec->Decode(layout, *codec->Encode(layout, zero, random.Normals(layout.total(), 0.01))));
  }
  std::vector<WeightedFrame> frames;
  for (const DecodedFrame& frame : decoded) {
    frames.push_back({&frame, 16 + static_cast<int32_t>(random.Below(241))});
  }
  if (frames.size() > 1) frames[1].refused = {1};
  return *SumFrames(layout, frames, averaging);
}

TEST(UpdateFormatTest, UpdatesComeBackAsTheyWere) {
  const Layout layout({5000, 130, 9000, 1}, 1);
  for (Averaging averaging : {Averaging::kPeers, Averaging::kContributors}) {
    for (const std::vector<const char*>& specs :
         {std::vector<const char*>{"topk(k=64)"},
          {"topk(k=64)", "topk(k=512)|levels(bits=2)", "topk(k=4096)"},
          {"dense", "dense"},
          {"dense", "topk(k=1)"},
          std::vector<const char*>(16, "topk(k=1024)|levels(bits=3)")}) {
      const Update update = MakeUpdate(layout, averaging, specs);
      const auto decoded = DecodeUpdate(layout, EncodeUpdate(layout, update));
      ASSERT_TRUE(decoded.ok()) << decoded.status();
      EXPECT_TRUE(SameUpdate(*decoded, update)) << specs.size() << " frames of " << specs[0];
    }
  }
}

TEST(UpdateFormatTest, MemoryOfOtherUpdatesAndPathsChangeNothing) {
  const Layout layout({5000, 130, 9000, 1}, 1);
  UpdateScratch scratch, portable(SimdPath::kPortable);
  Update decoded;
  for (Averaging averaging : {Averaging::kContributors, Averaging::kPeers}) {
    for (const std::vector<const char*>& specs : {std::vector<const char*>(3, "topk(k=1024)|levels(bits=3)"),
                                                  {"dense", "dense"},
                                                  {"topk(k=64)"},
                                                  {"dense", "topk(k=1)"},
                                                  {"topk(k=2)", "topk(k=2)"}}) {
      const Update update = MakeUpdate(layout, averaging, specs);
      const std::string bytes = EncodeUpdate(layout, update, &scratch);
      EXPECT_EQ(bytes, EncodeUpdate(layout, update));
      EXPECT_EQ(bytes, EncodeUpdate(layout, update, &portable));
      ASSERT_TRUE(DecodeUpdate(layout, bytes, &portable, &decoded).ok());
      EXPECT_TRUE(SameUpdate(decoded, update));
      ASSERT_TRUE(DecodeUpdate(layout, bytes, &scratch, &decoded).ok());
      EXPECT_TRUE(SameUpdate(decoded, update)) << specs.size() << " frames of " << specs[0];
    }
    Update none;
    none.total_weight = 64;
    none.tensors.resize(4);
    ASSERT_TRUE(DecodeUpdate(layout, EncodeUpdate(layout, none, &scratch), &scratch, &decoded).ok());
    EXPECT_TRUE(SameUpdate(decoded, none));
  }
}

TEST(UpdateFormatTest, ExtremeSumsComeBack) {
  const Layout layout({3, 3}, 1);
  Update update;
  update.total_weight = 1024 * 256;
  const int64_t most = kSumLimit - 1;
  update.tensors = {{TensorForm::kSparse, -149, {0, 2}, {most, -most}, {}, {}},
                    {TensorForm::kDense, 93, {}, {-most, 0, most}, {}, {0, 7, 1023}}};
  const auto decoded = DecodeUpdate(layout, EncodeUpdate(layout, update));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_TRUE(SameUpdate(*decoded, update));
}

TEST(UpdateFormatTest, AMeanThatNoFloatHoldsIsRefused) {
  const Layout layout({3}, 1);
  Update update;
  update.total_weight = 64;
  update.tensors = {{TensorForm::kSparse, 108, {0, 2}, {1, int64_t{1} << 26}, {}, {}}};  // 2^128
  const auto decoded = DecodeUpdate(layout, EncodeUpdate(layout, update));
  EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(decoded.status().message()), ::testing::HasSubstr("beyond what an fp32 holds"));
  update.tensors[0].sums[1] = int64_t{1} << 25;
  EXPECT_TRUE(SameUpdate(*DecodeUpdate(layout, EncodeUpdate(layout, update)), update));
}

TEST(UpdateFormatTest, NothingCommittedIsAFewBytes) {
  const Layout layout({4096, 4096}, 1);
  Update update;
  update.total_weight = 64;
  update.tensors.resize(2);
  const std::string bytes = EncodeUpdate(layout, update);
  EXPECT_LT(bytes.size(), 80u);
  EXPECT_TRUE(SameUpdate(*DecodeUpdate(layout, bytes), update));
}

TEST(UpdateFormatTest, EveryCutAndEveryFlippedBitIsFound) {
  const Layout layout({300}, 1);
  const std::string bytes =
      EncodeUpdate(layout, MakeUpdate(layout, Averaging::kContributors, {"topk(k=64)"}));
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    ASSERT_EQ(DecodeUpdate(layout, bytes.substr(0, cut)).status().code(), absl::StatusCode::kDataLoss) << cut;
  }
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    ASSERT_EQ(DecodeUpdate(layout, flipped).status().code(), absl::StatusCode::kDataLoss) << bit;
  }
}

TEST(UpdateFormatTest, AnotherLayoutIsRefused) {
  const std::string bytes =
      EncodeUpdate(Layout({300}, 1), MakeUpdate(Layout({300}, 1), Averaging::kPeers, {"topk(k=64)"}));
  EXPECT_EQ(DecodeUpdate(Layout({300}, 2), bytes).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DecodeUpdate(Layout({150, 150}, 1), bytes).status().code(), absl::StatusCode::kInvalidArgument);
  // The same digest with smaller tensors: positions must not pass their end.
  EXPECT_EQ(DecodeUpdate(Layout({4}, 1), bytes).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace isthmus
