// What every DeviceOps must do, run on the CPU reference and on the kernel's host twin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/device_ops.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include <cstring>
#include <vector>

#include "compression/fake_codecs.h"
#include "compression/test_random.h"
#include "gpu/host_twin_device_ops.h"

namespace isthmus {
namespace {

using Floats = std::vector<float>;
using ::testing::HasSubstr;

std::vector<uint32_t> Bits(const Floats& values) {
  std::vector<uint32_t> bits(values.size());
  if (!values.empty()) std::memcpy(bits.data(), values.data(), 4 * values.size());
  return bits;
}

Update SparseUpdate(int exponent, std::vector<uint32_t> positions, std::vector<int64_t> sums,
                    int64_t weight) {
  Update update;
  update.total_weight = weight;
  update.tensors = {{TensorForm::kSparse, exponent, std::move(positions), std::move(sums), {}, {}}};
  return update;
}

using MakeOps = std::unique_ptr<DeviceOps> (*)();

class DeviceOpsConformanceTest : public ::testing::TestWithParam<MakeOps> {
 protected:
  // The update of `frames` at weight 64 each.
  Update SumOf(const Layout& layout, std::vector<const DecodedFrame*> frames) {
    std::vector<WeightedFrame> weighted;
    for (const DecodedFrame* f : frames) weighted.push_back({f, 64});
    return *ops_->Sum(layout, weighted, Averaging::kPeers);
  }

  DecodedFrame RoundTrip(const Codec& codec, const Layout& layout, const Floats& anchor,
                         const Floats& parameters) {
    return *codec.Decode(layout, *ops_->Encode(codec, layout, anchor, parameters));
  }

  const std::unique_ptr<DeviceOps> ops_ = GetParam()();
};

TEST_P(DeviceOpsConformanceTest, PlainStepMovesTheTouchedValuesOnly) {
  const Layout layout({4}, 1);
  Floats anchor = {1, 2, 3, 4}, none;
  const Update update = SparseUpdate(-1, {1, 3}, {64, -192}, 64);  // u = 0.5 and −1.5
  ASSERT_TRUE(ops_->ApplyToAnchor(layout, update, {OuterForm::kPlain, 2.0f, 0}, absl::MakeSpan(anchor),
                                  absl::MakeSpan(none))
                  .ok());
  EXPECT_EQ(anchor, (Floats{1, 1, 3, 7}));
}

TEST_P(DeviceOpsConformanceTest, MeanIsRoundedOnceToDoubleAndOnceToFloat) {
  const Layout layout({1}, 1);
  Floats anchor = {0}, none;
  const Update update = SparseUpdate(-20, {0}, {1000001}, 192);
  ASSERT_TRUE(ops_->ApplyToAnchor(layout, update, {}, absl::MakeSpan(anchor), absl::MakeSpan(none)).ok());
  EXPECT_EQ(anchor[0], -static_cast<float>(1000001.0 / 1048576.0 / 192.0));
}

TEST_P(DeviceOpsConformanceTest, ContributorsDivideByTheWeightOfThePosition) {
  const Layout layout({3}, 1);
  Floats anchor = {0, 0, 0}, none;
  Update update = SparseUpdate(0, {0, 2}, {64, 64}, 192);
  update.averaging = Averaging::kContributors;
  update.tensors[0].weights = {64, 128};
  ASSERT_TRUE(ops_->ApplyToAnchor(layout, update, {}, absl::MakeSpan(anchor), absl::MakeSpan(none)).ok());
  EXPECT_EQ(anchor, (Floats{-1, 0, -0.5f}));
}

TEST_P(DeviceOpsConformanceTest, NesterovMovesEveryValueByMomentum) {
  const Layout layout({2, 1}, 1);
  Floats anchor = {10, 10, 10}, momentum = {2, 2, 4};
  Update update = SparseUpdate(0, {1}, {64}, 64);  // u = 1
  update.tensors.emplace_back();
  ASSERT_TRUE(ops_->ApplyToAnchor(layout, update, {OuterForm::kNesterov, 0.5f, 0.5f}, absl::MakeSpan(anchor),
                                  absl::MakeSpan(momentum))
                  .ok());
  EXPECT_EQ(momentum, (Floats{1, 2, 2}));
  EXPECT_EQ(anchor, (Floats{10 - 0.5f * 0.5f, 10 - 0.5f * 2, 10 - 0.5f}));
}

TEST_P(DeviceOpsConformanceTest, LosslessFrameOfTheOnlySiteLandsParametersOnTheAnchor) {
  TestRandom random(21);
  const Layout layout({5000, 3, 4096}, 1);
  Floats anchor(layout.total()), parameters(layout.total()), none;
  for (int64_t i = 0; i < layout.total(); ++i) {
    anchor[i] = static_cast<float>(random.Below(4096)) / 64;
    parameters[i] = anchor[i] + (static_cast<float>(random.Below(4096)) - 2048) / 1024;
  }
  const Floats before = parameters;
  const DecodedFrame own = RoundTrip(*MakeIdentityCodec(), layout, anchor, parameters);
  ASSERT_TRUE(ops_->ApplyOutcome(layout, SumOf(layout, {&own}), {}, {&own, {}}, absl::MakeSpan(anchor),
                                 absl::MakeSpan(none), absl::MakeSpan(parameters))
                  .ok());
  EXPECT_EQ(Bits(parameters), Bits(anchor));
  EXPECT_EQ(parameters, before);  // α = 1 and one site: the anchor comes to where the site is
}

TEST_P(DeviceOpsConformanceTest, LosslessFrameAmongOthersLandsOnTheNewAnchorWhateverTheStep) {
  TestRandom random(22);
  const Layout layout({3000}, 1);
  const Floats begin = random.Normals(3000, 1);
  Floats anchor(3000), parameters(3000), momentum = random.Normals(3000, 0.1), other(3000);
  for (int i = 0; i < 3000; ++i) {
    anchor[i] = static_cast<float>(random.Below(4096)) / 64;
    parameters[i] = anchor[i] + (static_cast<float>(random.Below(4096)) - 2048) / 1024;
    other[i] = anchor[i] + begin[i];
  }
  const DecodedFrame own = RoundTrip(*MakeIdentityCodec(), layout, anchor, parameters);
  const DecodedFrame theirs =
      RoundTrip(*std::move(ParseCodecSpec("topk(k=512)")).value(), layout, anchor, other);
  ASSERT_TRUE(ops_->ApplyOutcome(layout, SumOf(layout, {&own, &theirs}), {OuterForm::kNesterov, 0.7f, 0.9f},
                                 {&own, {}}, absl::MakeSpan(anchor), absl::MakeSpan(momentum),
                                 absl::MakeSpan(parameters))
                  .ok());
  EXPECT_EQ(Bits(parameters), Bits(anchor));
}

TEST_P(DeviceOpsConformanceTest, AFrameThatWasNotIncludedStaysCarried) {
  const Layout layout({2, 2}, 1);
  Floats anchor = {8, 8, 8, 8}, parameters = {7, 6, 5, 4}, none;
  const DecodedFrame own = RoundTrip(*MakeIdentityCodec(), layout, anchor, parameters);
  Update update = SparseUpdate(0, {0}, {64}, 64);  // only position 0 moves, by −1
  update.tensors.push_back({TensorForm::kSparse, 0, {1}, {128}, {}, {}});
  // Tensor 0 was left out, tensor 1 included.
  ASSERT_TRUE(ops_->ApplyOutcome(layout, update, {}, {&own, {false, true}}, absl::MakeSpan(anchor),
                                 absl::MakeSpan(none), absl::MakeSpan(parameters))
                  .ok());
  EXPECT_EQ(anchor, (Floats{7, 8, 8, 6}));
  EXPECT_EQ(parameters, (Floats{6, 6, 8, 6}));  // 7 − 1, untouched, sent and nothing came, sent
}

TEST_P(DeviceOpsConformanceTest, NothingASiteDidIsLostOverManyRounds) {
  // Mass invariant (i): what the inner steps did = carried + committed, on values where fp32 is exact.
  TestRandom random(23);
  const Layout layout({5000, 40}, 1);
  const auto codec = std::move(ParseCodecSpec("topk(k=256)|levels(bits=2)")).value();
  Floats anchors[2] = {Floats(layout.total(), 16), Floats(layout.total(), 16)};
  Floats parameters[2] = {anchors[0], anchors[1]}, none;
  std::vector<double> done[2], committed[2];
  for (int s = 0; s < 2; ++s) {
    done[s].resize(layout.total());
    committed[s].resize(layout.total());
  }
  for (int round = 0; round < 6; ++round) {
    DecodedFrame frames[2];
    for (int s = 0; s < 2; ++s) {
      for (int64_t i = 0; i < layout.total(); ++i) {
        const float step = (static_cast<float>(random.Below(65)) - 32) / 64;
        parameters[s][i] -= step;
        done[s][i] += step;
      }
      frames[s] = RoundTrip(*codec, layout, anchors[s], parameters[s]);
    }
    // Every third round is lost to site 1: its frame was late.
    const bool late = round % 3 == 2;
    const Update update = late ? SumOf(layout, {&frames[0]}) : SumOf(layout, {&frames[0], &frames[1]});
    for (int s = 0; s < 2; ++s) {
      const bool included = s == 0 || !late;
      ASSERT_TRUE(ops_->ApplyOutcome(layout, update, {}, {included ? &frames[s] : nullptr, {}},
                                     absl::MakeSpan(anchors[s]), absl::MakeSpan(none),
                                     absl::MakeSpan(parameters[s]))
                      .ok());
      for (int t = 0; included && t < layout.tensors(); ++t) {
        const DecodedTensor& sent = frames[s].tensors[t];
        for (size_t i = 0; i < sent.positions.size(); ++i) {
          committed[s][layout.offset(t) + sent.positions[i]] +=
              DecodedValue(sent.mantissas[i], sent.exponent);
        }
      }
      for (int64_t i = 0; i < layout.total(); ++i) {
        const double carried = static_cast<double>(anchors[s][i]) - parameters[s][i];
        ASSERT_EQ(done[s][i], carried + committed[s][i])
            << "round " << round << " site " << s << " value " << i;
      }
    }
    ASSERT_EQ(Bits(anchors[0]), Bits(anchors[1])) << round;
  }
}

TEST_P(DeviceOpsConformanceTest, SnapshotCatchUpKeepsWhatIsCarried) {
  const Layout layout({2, 2}, 1);
  Floats anchor = {8, 8, 8, 8}, parameters = {7, 6, 5, 4};
  const Floats now = {9, 8, 8, 10};
  const DecodedFrame own{{{TensorForm::kSparse, 0, 20, {0}, {1}}, {TensorForm::kDense, 0, 24, {}, {3, 1}}}};
  ASSERT_TRUE(ops_->MoveToAnchor(layout, now, {&own, {false, true}}, absl::MakeSpan(anchor),
                                 absl::MakeSpan(parameters))
                  .ok());
  EXPECT_EQ(anchor, now);
  EXPECT_EQ(parameters, (Floats{8, 6, 8, 7}));
}

TEST_P(DeviceOpsConformanceTest, WhatDoesNotFitIsRefusedAndNothingIsWritten) {
  const Layout layout({2}, 1);
  Floats anchor = {1, 2}, parameters = {3, 4}, none, momentum = {5, 6};
  const auto refused = [&](const Update& update, const OuterStep& step, const OwnFrame& own,
                           Floats& with_momentum) {
    const absl::Status s = ops_->ApplyOutcome(layout, update, step, own, absl::MakeSpan(anchor),
                                              absl::MakeSpan(with_momentum), absl::MakeSpan(parameters));
    EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument);
    return std::string(s.message());
  };
  const Update fine = SparseUpdate(0, {0, 1}, {1, 1}, 64);
  EXPECT_THAT(refused(SparseUpdate(0, {0, 2}, {1, 1}, 64), {}, {}, none), HasSubstr("update's tensor 0"));
  EXPECT_THAT(refused(SparseUpdate(0, {0}, {1, 1}, 64), {}, {}, none), HasSubstr("update's tensor 0"));
  EXPECT_THAT(refused(SparseUpdate(0, {0}, {1}, 0), {}, {}, none), HasSubstr("without weight"));
  EXPECT_THAT(refused(fine, {}, {}, momentum), HasSubstr("momentum of 2 values, 0 are needed"));
  EXPECT_THAT(refused(fine, {OuterForm::kNesterov, 1, 1}, {}, none), HasSubstr("momentum of 0 values, 2"));
  const DecodedFrame own{{{TensorForm::kSparse, 0, 20, {2}, {1}}}};
  EXPECT_THAT(refused(fine, {}, {&own, {}}, none), HasSubstr("own frame's tensor 0"));
  EXPECT_EQ(anchor, (Floats{1, 2}));
  EXPECT_EQ(parameters, (Floats{3, 4}));
  EXPECT_EQ(momentum, (Floats{5, 6}));
}

#if defined(__SSE2__)
TEST_P(DeviceOpsConformanceTest, SubnormalsAreKeptThoughALibraryFlushesThem) {
  const Layout layout({2}, 1);
  Floats anchor = {0x1p-140f, 0x1p-126f}, parameters = {0x1p-141f, 0x1p-126f}, none;
  const Update update = SparseUpdate(-141, {0, 1}, {64, 64}, 64);
  const unsigned before = _mm_getcsr();
  const unsigned flushing = before | 0x8040u;
  _mm_setcsr(flushing);
  const absl::Status applied = ops_->ApplyOutcome(layout, update, {}, {}, absl::MakeSpan(anchor),
                                                  absl::MakeSpan(none), absl::MakeSpan(parameters));
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  ASSERT_TRUE(applied.ok());
  EXPECT_EQ(after & 0x8040u, 0x8040u);
  EXPECT_EQ(Bits(anchor), Bits({0x1p-141f, 0x1p-126f - 0x1p-141f}));
  EXPECT_EQ(Bits(parameters), Bits({0.0f, 0x1p-126f - 0x1p-141f}));
}
#endif

// The two implementations side by side on random rounds of every kind.
TEST(HostTwinTest, GivesTheReferencesBitsOnRandomRounds) {
  const auto reference = MakeCpuDeviceOps(), twin = MakeHostTwinDeviceOps();
  TestRandom random(24);
  for (int round = 0; round < 200; ++round) {
    const Layout layout({static_cast<int64_t>(1 + random.Below(9000)), 7}, 1);
    const char* specs[] = {"topk(k=64)", "topk(k=2000)|levels(bits=3)", "dense"};
    Floats anchor = random.Normals(layout.total(), random.Chance(0.2) ? 1e-38 : 1);
    Floats parameters = random.Normals(layout.total(), 1), momentum;
    std::vector<DecodedFrame> decoded;
    for (int s = 0; s < 3; ++s) {
      const auto codec = std::move(ParseCodecSpec(specs[random.Below(3)])).value();
      const Floats theirs = random.Normals(layout.total(), random.Chance(0.2) ? 1e-36 : 1);
      decoded.push_back(*codec->Decode(layout, *codec->Encode(layout, anchor, s == 0 ? parameters : theirs)));
    }
    std::vector<WeightedFrame> frames;
    for (const DecodedFrame& f : decoded)
      frames.push_back({&f, 16 + static_cast<int32_t>(random.Below(241))});
    const Update update = *SumFrames(layout, frames, static_cast<Averaging>(random.Below(2)));
    OuterStep step{static_cast<OuterForm>(random.Below(2)), static_cast<float>(random.Uniform()), 0.9f};
    if (step.form == OuterForm::kNesterov) momentum = random.Normals(layout.total(), 0.1);
    OwnFrame own{random.Chance(0.8) ? &decoded[0] : nullptr, {}};
    if (random.Chance(0.5)) own.included = {random.Chance(0.5), true};
    Floats a = anchor, p = parameters, m = momentum;
    ASSERT_TRUE(reference
                    ->ApplyOutcome(layout, update, step, own, absl::MakeSpan(anchor),
                                   absl::MakeSpan(momentum), absl::MakeSpan(parameters))
                    .ok());
    ASSERT_TRUE(
        twin->ApplyOutcome(layout, update, step, own, absl::MakeSpan(a), absl::MakeSpan(m), absl::MakeSpan(p))
            .ok());
    ASSERT_EQ(Bits(a), Bits(anchor)) << round;
    ASSERT_EQ(Bits(p), Bits(parameters)) << round;
    ASSERT_EQ(Bits(m), Bits(momentum)) << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Implementations, DeviceOpsConformanceTest,
                         ::testing::Values(MakeCpuDeviceOps, MakeHostTwinDeviceOps),
                         [](const auto& info) { return info.index == 0 ? "Cpu" : "HostTwin"; });

}  // namespace
}  // namespace isthmus
