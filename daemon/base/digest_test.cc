#include "daemon/base/digest.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace isthmus {
namespace {

// Eight bytes, big-endian.
std::string Big(uint64_t v) {
  std::string out(8, '\0');
  for (int i = 0; i < 8; ++i) out[i] = static_cast<char>(v >> (56 - 8 * i));
  return out;
}

TEST(Digest, IsXxh3Of128Bits) {
  // The published values of the algorithm.
  EXPECT_EQ(DigestOf("").ToHex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(DigestOf("abc").ToHex(), "06b05ab6733a618578af5f94892f3950");
}

TEST(Digest, GoesThroughBytesAndBack) {
  const Digest digest{0x0123456789abcdefull, 0xfedcba9876543210ull};
  EXPECT_EQ(digest.ToHex(), "0123456789abcdeffedcba9876543210");
  EXPECT_EQ(digest.ToBytes(), "\x01\x23\x45\x67\x89\xab\xcd\xef\xfe\xdc\xba\x98\x76\x54\x32\x10");
  EXPECT_EQ(*DigestFromBytes(digest.ToBytes()), digest);
}

TEST(Digest, ReadsNothingAsZeroAndRefusesOtherLengths) {
  EXPECT_TRUE(DigestFromBytes("")->is_zero());
  for (size_t size : {1, 15, 17, 32}) {
    const auto digest = DigestFromBytes(std::string(size, 'x'));
    EXPECT_EQ(digest.status().code(), absl::StatusCode::kInvalidArgument) << size;
  }
  EXPECT_EQ(DigestFromBytes("abc").status().message(), "a digest has 16 bytes, this one 3");
}

TEST(Digest, OrdersByTheHighHalfFirst) {
  EXPECT_LT((Digest{1, 9}), (Digest{2, 0}));
  EXPECT_LT((Digest{1, 1}), (Digest{1, 2}));
  EXPECT_FALSE((Digest{1, 1}) < (Digest{1, 1}));
  EXPECT_NE((Digest{1, 0}), (Digest{0, 1}));
}

TEST(Digest, CoversTheBitsOfFloatsNotTheirValues) {
  const float plus = 0.0f, minus = -0.0f;
  EXPECT_NE(DigestOf(absl::Span<const float>(&plus, 1)), DigestOf(absl::Span<const float>(&minus, 1)));
  const std::vector<float> values = {1.0f, -2.5f};
  const std::string bytes("\x00\x00\x80\x3f\x00\x00\x20\xc0", 8);
  EXPECT_EQ(DigestOf(values), DigestOf(bytes));
}

struct State {
  StateStamp stamp{3, 90, 0x3f800000, 0x3f000000};
  std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {-7}, momentum;
  std::string a_name = "a.weight", b_name = "b";
  std::vector<int64_t> a_shape = {2, 3}, b_shape = {1};

  Digest Of() const { return StateDigest(stamp, {{a_name, a_shape, a}, {b_name, b_shape, b}}, momentum); }
};

TEST(StateDigest, IsTheDigestOfStampNamesShapesAndValues) {
  const State s;
  std::string text = Big(1) + Big(3) + Big(90) + Big(0x3f800000) + Big(0x3f000000) + Big(2);
  text += Big(8) + "a.weight" + Big(2) + Big(2) + Big(3) + DigestOf(s.a).ToBytes();
  text += Big(1) + "b" + Big(1) + Big(1) + DigestOf(s.b).ToBytes();
  EXPECT_EQ(s.Of(), DigestOf(text));
}

TEST(StateDigest, StaysWhatItIsFromVersionToVersion) {
  EXPECT_EQ(State().Of().ToHex(), "880072894ae0ed7b14f4fadd2b339942");
  State s;
  s.momentum = {1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(s.Of().ToHex(), "fd084b3a6fc904a6919381760e8f6e34");
}

TEST(StateDigest, ChangesWithEveryPart) {
  const Digest digest = State().Of();
  std::vector<State> others(13);
  others[0].stamp.round = 4;
  others[1].stamp.schedule_step = 91;
  others[2].stamp.alpha_bits ^= 1;
  others[3].stamp.momentum_bits ^= 1;
  others[4].a[5] = 6.0000005f;
  others[5].b[0] = 7;
  others[6].a_name = "a.weighs";
  others[7].a_shape = {3, 2};
  others[8].a_shape = {6};
  others[9].momentum = {0, 0, 0, 0, 0, 0, 0};
  others[10].b_name = "";
  std::swap(others[11].a_name, others[11].b_name);
  others[12].b_shape = {1, 1};
  for (size_t i = 0; i < others.size(); ++i) EXPECT_NE(others[i].Of(), digest) << i;
}

}  // namespace
}  // namespace isthmus
