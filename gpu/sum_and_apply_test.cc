#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "compression/checked_frame.h"
#include "compression/codec.h"
#include "compression/simd_path.h"
#include "compression/test_random.h"
#include "compression/update.h"
#include "gpu/device_ops.h"

namespace isthmus {
namespace {

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), sizeof(float) * a.size()) == 0;
}

bool SameTensors(const Update& a, const Update& b) {
  if (a.averaging != b.averaging || a.total_weight != b.total_weight || a.tensors.size() != b.tensors.size())
    return false;
  for (size_t t = 0; t < a.tensors.size(); ++t) {
    const UpdateTensor &x = a.tensors[t], &y = b.tensors[t];
    if (x.form != y.form || x.exponent != y.exponent || x.positions != y.positions || x.sums != y.sums ||
        x.weights != y.weights || x.left_out != y.left_out)
      return false;
  }
  return true;
}

class SumAndApplyTest : public ::testing::Test {
 protected:
  static constexpr int kFrames = 6;

  SumAndApplyTest() : layout_({5000, 130, 3 * 4096, 20000, 7}, 1) {
    TestRandom random(31);
    anchor_ = random.Normals(layout_.total(), 1);
    momentum_ = random.Normals(layout_.total(), 0.1);
    for (int f = 0; f < kFrames; ++f) {
      const auto codec = std::move(ParseCodecSpec(f == 4   ? "dense"
                                                  : f == 5 ? "topk(k=256)|levels(bits=2)"
                                                           : "topk(k=64)"))
                             .value();
      // The last one's scale makes sums too large for 31 bits.
      std::vector<float> theirs = random.Normals(layout_.total(), f == 5 ? 1.0 : 0.01);
      // Another one's blocks differ, so that some sums fit in 15 bits and others do not.
      for (size_t i = 0; f == 3 && i < theirs.size(); ++i)
        theirs[i] = std::ldexp(theirs[i], static_cast<int>(i / 1024 % 12));
      std::fill(theirs.begin() + layout_.offset(4), theirs.end(), 0.0f);  // a tensor nobody sends
      const std::string frame = *codec->Encode(layout_, std::vector<float>(layout_.total()), theirs);
      EXPECT_TRUE(codec->Check(layout_, frame, &checked_[f]).ok());
    }
  }

  std::vector<WeightedFrame> Frames(int count, int32_t weight) const {
    std::vector<WeightedFrame> frames;
    for (int f = 0; f < count; ++f) {
      frames.push_back({nullptr, weight + (weight == 64 ? 0 : f), {}, &checked_[f]});
    }
    return frames;
  }

  const Layout layout_;
  std::vector<float> anchor_, momentum_;
  CheckedFrame checked_[kFrames];
};

TEST_F(SumAndApplyTest, AnchorAndUpdateAreThoseOfSumAndApplyToAnchor) {
  const OuterStep steps[] = {{OuterForm::kPlain, 1.0f, 0},
                             {OuterForm::kPlain, 1.3125f, 0},
                             {OuterForm::kPlain, -0.5f, 0},
                             {OuterForm::kPlain, 0.0f, 0},
                             {OuterForm::kNesterov, 0.7f, 0.9f}};
  Update made;  // the same memory for all
  for (SimdPath path : kAllSimdPaths) {
    if (!HasSimdPath(path)) continue;
    for (int count : {1, 2, 4, 5, 6}) {
      for (int32_t weight : {64, 61}) {
        const std::vector<WeightedFrame> frames = Frames(count, weight);
        for (Averaging averaging : {Averaging::kPeers, Averaging::kContributors}) {
          for (const OuterStep& step : steps) {
            const bool has_momentum = step.form == OuterForm::kNesterov;
            const auto ops = MakeCpuDeviceOpsWith({count % 3, path});
            std::vector<float> wanted = anchor_, wanted_m = has_momentum ? momentum_ : std::vector<float>();
            const Update update = *ops->Sum(layout_, frames, averaging);
            ASSERT_TRUE(
                ops->ApplyToAnchor(layout_, update, step, absl::MakeSpan(wanted), absl::MakeSpan(wanted_m))
                    .ok());
            for (bool wants_update : {false, true}) {
              std::vector<float> anchor = anchor_, m = has_momentum ? momentum_ : std::vector<float>();
              ASSERT_TRUE(ops->SumAndApply(layout_, frames, averaging, step, absl::MakeSpan(anchor),
                                           absl::MakeSpan(m), wants_update ? &made : nullptr)
                              .ok());
              EXPECT_TRUE(SameBits(anchor, wanted)) << SimdPathName(path) << ", " << count << " frames";
              EXPECT_TRUE(SameBits(m, wanted_m));
              EXPECT_TRUE(!wants_update || SameTensors(made, update));
            }
          }
        }
      }
    }
  }
}

TEST_F(SumAndApplyTest, NothingIsWrittenWhenSomethingDoesNotFit) {
  const auto ops = MakeCpuDeviceOps();
  std::vector<float> anchor = anchor_;
  std::vector<WeightedFrame> frames = Frames(2, 64);
  const auto run = [&](absl::Span<float> into) {
    return ops
        ->SumAndApply(layout_, frames, Averaging::kPeers, OuterStep(), into, absl::Span<float>(), nullptr)
        .code();
  };
  EXPECT_EQ(run(absl::MakeSpan(anchor).subspan(1)), absl::StatusCode::kInvalidArgument);
  frames[1].weight = 3;
  EXPECT_EQ(run(absl::MakeSpan(anchor)), absl::StatusCode::kInvalidArgument);
  frames.clear();
  EXPECT_EQ(run(absl::MakeSpan(anchor)), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(SameBits(anchor, anchor_));
}

}  // namespace
}  // namespace isthmus
