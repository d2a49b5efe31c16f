// Sparse frames of normal differences beside what their positions and values must take at least.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compression/codec.h"
#include "compression/stream_sizes.h"
#include "compression/test_random.h"

namespace isthmus {
namespace {

constexpr int64_t kValues = 1 << 22;
// What does not grow with the model: envelope, spec, tables of the streams' codes. A sixtieth of the smallest
// frame here, a thousandth of what it is of 2^26 values.
constexpr double kFixedBytes = 350;

// log2 of how many ways there are to choose k of a block's 4096 positions.
double PositionBits(int k) {
  const double n = 4096;
  return (std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1)) / std::log(2.0);
}

TEST(SparseSizeTest, FramesAreWithinTheirShareOfTheBound) {
  const Layout layout(std::vector<int64_t>(4, kValues / 4), 1);
  const std::vector<float> anchor(kValues), parameters = TestRandom(6).Normals(kValues, 0.01);
  const double blocks = static_cast<double>(kValues) / kBlockValues;
  for (int k : {16, 32, 64, 128, 256}) {
    for (int bits : {1, 2, 3}) {
      if (bits == 3 && k != 64) continue;
      const auto codec =
          std::move(ParseCodecSpec(absl::StrCat("topk(k=", k, ")|levels(bits=", bits, ")"))).value();
      const std::string frame = codec->Encode(layout, anchor, parameters).value();
      const double bound = blocks * (PositionBits(k) + k * bits) / 8;
      const double share = k >= 64 && bits < 3 ? 1.04 : 1.06;
      EXPECT_LE(frame.size(), share * bound + kFixedBytes) << "k " << k << ", bits " << bits;
      const auto sizes = SizesOfFrame(frame);
      ASSERT_TRUE(sizes.ok()) << sizes.status();
      if (k == 64) {
        EXPECT_LE(8 * static_cast<double>(sizes->positions) / (blocks * k), 7.5) << bits;
      }
    }
  }
}

}  // namespace
}  // namespace isthmus
