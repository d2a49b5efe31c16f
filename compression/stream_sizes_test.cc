#include "compression/stream_sizes.h"

#include <gtest/gtest.h>

#include "compression/codec.h"
#include "compression/test_random.h"
#include "compression/update.h"

namespace isthmus {
namespace {

const Layout& TheLayout() {
  static const Layout* const layout = new Layout({8192, 5}, 1);
  return *layout;
}

std::string Frame(const char* spec, uint64_t seed) {
  const std::vector<float> zero(TheLayout().total());
  const auto codec = std::move(ParseCodecSpec(spec)).value();
  return codec->Encode(TheLayout(), zero, TestRandom(seed).Normals(TheLayout().total(), 0.01)).value();
}

std::string UpdateOf(const char* spec) {
  std::vector<DecodedFrame> decoded;
  const auto codec = std::move(ParseCodecSpec(spec)).value();
  for (int s = 0; s < 3; ++s) decoded.push_back(codec->Decode(TheLayout(), Frame(spec, s)).value());
  return EncodeUpdate(TheLayout(),
                      SumFrames(TheLayout(), {{&decoded[0], 64}, {&decoded[1], 64}, {&decoded[2], 21}},
                                Averaging::kContributors)
                          .value());
}

TEST(StreamSizesTest, PartsOfAFrameAreAllOfIt) {
  const std::string frame = Frame("topk(k=64)", 1);
  const auto sizes = SizesOfFrame(frame);
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  EXPECT_EQ(sizes->total(), static_cast<int64_t>(frame.size()));
  EXPECT_GT(sizes->positions, sizes->values);
  EXPECT_EQ(sizes->values, 2 + (2 * 64 + 1 + 7) / 8);  // a bit each, and two lengths
  EXPECT_EQ(sizes->levels, 2 + 3);                     // one for each block
}

TEST(StreamSizesTest, PartsOfAnUpdateAreAllOfIt) {
  const std::string sparse = UpdateOf("topk(k=64)"), dense = UpdateOf("dense");
  const auto sizes = SizesOfUpdate(sparse), of_dense = SizesOfUpdate(dense);
  ASSERT_TRUE(sizes.ok() && of_dense.ok());
  EXPECT_EQ(sizes->total(), static_cast<int64_t>(sparse.size()));
  EXPECT_GT(sizes->positions, sizes->names);
  EXPECT_GT(sizes->names, 30);
  EXPECT_GT(sizes->literals, 10);
  EXPECT_GT(sizes->signs, 40);
  EXPECT_EQ(sizes->dense, 4);  // the lengths of two empty streams
  EXPECT_EQ(of_dense->total(), static_cast<int64_t>(dense.size()));
  EXPECT_GT(of_dense->dense, 8197);
}

TEST(StreamSizesTest, CutBytesHaveNoSizes) {
  const std::string frame = Frame("topk(k=64)", 1);
  EXPECT_FALSE(SizesOfFrame(frame.substr(0, 20)).ok());
  EXPECT_FALSE(SizesOfFrame(frame.substr(0, frame.size() - 10)).ok());
  EXPECT_FALSE(SizesOfUpdate(UpdateOf("topk(k=64)") + "x").ok());
}

}  // namespace
}  // namespace isthmus
