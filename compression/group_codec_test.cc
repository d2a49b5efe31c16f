#include "compression/group_codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "compression/codec_spec.h"
#include "compression/encode_plan.h"
#include "compression/group_form.h"
#include "compression/simd_path.h"
#include "compression/test_fillings.h"
#include "compression/test_random.h"

namespace isthmus {
namespace {

constexpr const char* kSpecs[] = {"dense(bits=8)",
                                  "dense(bits=8,group=4096)|zstd(0)",
                                  "dense(bits=4)",
                                  "dense(bits=4,group=16)",
                                  "dense(bits=4,hadamard=7)",
                                  "dense(bits=4,group=512,hadamard=1)|zstd(0)"};

GroupCodec MakeCodec(const std::string& spec, SimdPath path = SimdPath::kPortable, int threads = 1) {
  return GroupCodec(*ParseSpecText(spec), EncodePlan{path, threads});
}

DecodedTensor RoundTrip(const std::string& spec, const std::vector<float>& d) {
  const GroupCodec codec = MakeCodec(spec);
  const Layout layout({static_cast<int64_t>(d.size())}, 1);
  const auto frame = codec.Encode(layout, d, std::vector<float>(d.size()));
  EXPECT_TRUE(frame.ok()) << frame.status();
  const auto decoded = codec.Decode(layout, *frame);
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return decoded->tensors[0];
}

double ValueOf(const DecodedTensor& tensor, size_t i) {
  return std::ldexp(static_cast<double>(tensor.mantissas[i]), tensor.exponent);
}

// Energy over energy of the error, in decibels.
double SignalToNoise(const std::vector<float>& d, const DecodedTensor& tensor) {
  double energy = 0, error = 0;
  for (size_t i = 0; i < d.size(); ++i) {
    energy += double{d[i]} * d[i];
    error += std::pow(d[i] - ValueOf(tensor, i), 2);
  }
  return 10 * std::log10(energy / error);
}

TEST(GroupCodecTest, AGroupsLargestValueUsesTheWholeRange) {
  std::vector<float> d(128);
  d[0] = 127;
  d[1] = -1.5f;  // halves to even
  d[2] = 2.5f;
  d[64] = 127.5f;  // would round to 128: twice the step
  d[65] = 1;
  const DecodedTensor t = RoundTrip("dense(bits=8)", d);
  EXPECT_EQ(t.form, TensorForm::kDense);
  EXPECT_EQ(t.mantissa_bits, 20);
  EXPECT_EQ(t.exponent, 1 - 13);
  EXPECT_EQ(t.mantissas[0], 127 << 12);
  EXPECT_EQ(t.mantissas[1], -(2 << 12));
  EXPECT_EQ(t.mantissas[2], 2 << 12);
  EXPECT_EQ(t.mantissas[64], 64 << 13);
  EXPECT_EQ(t.mantissas[65], 0);
}

TEST(GroupCodecTest, FourBitsReachSevenSteps) {
  std::vector<float> d(65);
  d[0] = -7;
  d[1] = 0.5f;
  d[2] = 7.4f;
  d[64] = 7.5f;
  const DecodedTensor t = RoundTrip("dense(bits=4)", d);
  EXPECT_EQ(t.mantissa_bits, 20);
  EXPECT_EQ(t.exponent, 1 - 17);
  EXPECT_EQ(t.mantissas[0], -7 * (1 << 16));
  EXPECT_EQ(t.mantissas[1], 0);
  EXPECT_EQ(t.mantissas[2], 7 << 16);
  EXPECT_EQ(t.mantissas[64], 4 << 17);
}

TEST(GroupCodecTest, GroupsTooSmallAreCoarseAndThenZero) {
  std::vector<float> d(4 * 64);
  d[0] = 64;
  d[64] = std::ldexp(64.0f, -13);   // shift 0
  d[128] = std::ldexp(64.0f, -16);  // three bits fewer
  d[192] = std::ldexp(64.0f, -20);  // 2^−1 steps: to even, 0
  const DecodedTensor t = RoundTrip("dense(bits=8)", d);
  EXPECT_EQ(t.mantissas[0], 64 << 13);
  EXPECT_EQ(t.mantissas[64], 64);
  EXPECT_EQ(t.mantissas[128], 8);
  EXPECT_EQ(t.mantissas[192], 0);
}

// E and mantissas by search in double, for forms without a transform.
DecodedTensor SlowTensor(const std::vector<float>& d, int most, int limit, size_t group) {
  const auto rounded = [](double v, int e) { return std::nearbyint(std::ldexp(v, -e)); };
  const auto exponent = [&](size_t at) {
    double largest = 0;
    for (size_t i = at; i < std::min(at + group, d.size()); ++i)
      largest = std::max(largest, std::fabs(double{d[i]}));
    if (largest == 0) return INT_MIN;
    int e = -149;
    while (rounded(largest, e) > most && e < 108 + limit) ++e;
    return e;
  };
  DecodedTensor t;
  int top = INT_MIN;
  for (size_t at = 0; at < d.size(); at += group) top = std::max(top, exponent(at));
  if (top == INT_MIN) return t;
  t.form = TensorForm::kDense;
  t.exponent = std::max(top - limit, -149);
  t.mantissa_bits = 20;
  for (size_t i = 0; i < d.size(); ++i) {
    const int e = std::max(exponent(i / group * group), t.exponent);
    const double m = std::clamp<double>(rounded(d[i], e), -most, most);
    t.mantissas.push_back(static_cast<int32_t>(std::ldexp(m, e - t.exponent)));
  }
  return t;
}

TEST(GroupCodecTest, EveryShapeAndLookDecodesToWhatASlowRoutineRounds) {
  TestRandom random(3);
  for (const Filling& filling : Fillings()) {
    for (size_t n : {1u, 63u, 65u, 4095u, 4096u, 4097u, 5001u}) {
      std::vector<float> anchor(n), parameters(n), d(n);
      filling.fill(&random, &anchor, &parameters);
      for (size_t i = 0; i < n; ++i) d[i] = anchor[i] - parameters[i];
      for (int bits : {8, 4}) {
        const DecodedTensor expected = SlowTensor(d, bits == 8 ? 127 : 7, bits == 8 ? 13 : 17, 64);
        const DecodedTensor t = RoundTrip("dense(bits=" + std::to_string(bits) + ")", d);
        EXPECT_EQ(t.form, expected.form) << filling.name;
        EXPECT_EQ(t.exponent, expected.exponent) << filling.name;
        EXPECT_EQ(t.mantissas, expected.mantissas) << filling.name << ", " << n << " values, " << bits;
      }
    }
  }
}

TEST(GroupCodecTest, TransformedValuesComeBackAndStayInTheirBits) {
  TestRandom random(4);
  for (int64_t n : {1, 63, 64, 100, 4095, 4096, 4097, 9000}) {
    const std::vector<float> d = random.Normals(n, 0.01);
    const DecodedTensor t = RoundTrip("dense(bits=4,hadamard=7)", d);
    EXPECT_EQ(t.mantissa_bits, 24);
    EXPECT_GT(SignalToNoise(d, t), 15) << n;
    for (int32_t m : t.mantissas) ASSERT_LT(std::abs(m), 1 << 24);
  }
  const float huge = std::numeric_limits<float>::max();
  const DecodedTensor t = RoundTrip("dense(bits=4,hadamard=7)", std::vector<float>(4096, huge));
  for (size_t i = 0; i < 4096; ++i) ASSERT_TRUE(std::isfinite(DecodedValue(t.mantissas[i], t.exponent)));
}

TEST(GroupCodecTest, ATransformIsTheProductWithSignsAndAHadamardMatrix) {
  // One coefficient of 1: the decoded values are a row of the matrix with the signs.
  const HadamardSigns signs(7);
  std::vector<float> d(4096);
  for (int i = 0; i < 4096; ++i) {
    const float row = __builtin_parity(i & 37) ? -1.0f : 1.0f;
    d[i] = signs.of[i] != 0 ? -row : row;
  }
  const DecodedTensor t = RoundTrip("dense(bits=4,hadamard=7)", d);
  for (int i = 0; i < 4096; ++i) ASSERT_EQ(ValueOf(t, i), d[i]) << i;
}

TEST(GroupCodecTest, ErrorsAreThoseOfTheTablesLessWhatPowersOfTwoCost) {
  // ALGORITHMS C.5: int8 of absmax groups of 64 44.5, 42.2, 39.6 dB; int4 19.4, 17.1, 14.9; transformed, all
  // as Gaussian. Steps that are powers of two are up to twice as wide: 3.3 dB on average.
  const struct {
    const char* spec;
    double decibels[3];
  } cases[] = {{"dense(bits=8)", {44.5, 42.2, 39.6}},
               {"dense(bits=4)", {19.4, 17.1, 14.9}},
               {"dense(bits=4,hadamard=7)", {19.4, 19.4, 19.4}}};
  const auto gaussian = [](TestRandom* r) {
    return std::sqrt(-2 * std::log(1 - r->Uniform())) * std::cos(6.283185307 * r->Uniform());
  };
  TestRandom random(6);
  std::vector<float> d[3];
  for (int i = 0; i < 64 * 4096; ++i) {
    d[0].push_back(static_cast<float>(gaussian(&random)));
    d[1].push_back(static_cast<float>((random.Chance(0.5) ? 1 : -1) * std::log(1 - random.Uniform())));
    double chi = 0;
    for (int k = 0; k < 3; ++k) chi += std::pow(gaussian(&random), 2);
    d[2].push_back(static_cast<float>(gaussian(&random) / std::sqrt(chi / 3)));
  }
  for (const auto& c : cases) {
    for (int look = 0; look < 3; ++look) {
      const double measured = SignalToNoise(d[look], RoundTrip(c.spec, d[look]));
      EXPECT_GT(measured, c.decibels[look] - 4.5) << c.spec << ", look " << look;
      EXPECT_LT(measured, c.decibels[look] + 1.5) << c.spec << ", look " << look;
    }
  }
}

TEST(GroupCodecTest, EveryPathAndNumberOfThreadsGivesTheSameFramesAndNumbers) {
  TestRandom random(7);
  std::vector<Layout> layouts = TestLayouts();
  layouts.push_back(Layout({(1 << 19) + 4096 * 3 + 17, 4096, (1 << 18) + 1}, 1));
  for (const Layout& layout : layouts) {
    std::vector<float> anchor(layout.total()), parameters(layout.total());
    for (const Filling& filling : Fillings()) {
      if (layout.total() > 100000 && filling.name != std::string("scales 2^20 apart")) continue;
      filling.fill(&random, &anchor, &parameters);
      for (const char* spec : kSpecs) {
        const GroupCodec oracle = MakeCodec(spec);
        const auto expected = oracle.Encode(layout, anchor, parameters);
        ASSERT_TRUE(expected.ok() || filling.name == std::string("any finite bits")) << expected.status();
        for (SimdPath path : kAllSimdPaths) {
          if (!HasSimdPath(path)) continue;
          for (int threads : {1, 3}) {
            const GroupCodec codec = MakeCodec(spec, path, threads);
            const auto frame = codec.Encode(layout, anchor, parameters);
            ASSERT_EQ(frame.status(), expected.status()) << SimdPathName(path);
            if (!frame.ok()) continue;
            ASSERT_TRUE(*frame == *expected) << SimdPathName(path) << ", " << spec << ", " << filling.name;
            const auto numbers = codec.Decode(layout, *frame), plain = oracle.Decode(layout, *frame);
            ASSERT_TRUE(numbers.ok()) << numbers.status();
            for (int t = 0; t < layout.tensors(); ++t) {
              ASSERT_EQ(numbers->tensors[t].mantissas, plain->tensors[t].mantissas) << SimdPathName(path);
            }
          }
        }
      }
    }
  }
}

TEST(GroupCodecTest, MemoryThatWasUsedChangesNothing) {
  TestRandom random(8);
  const Layout layout({5000, 77}, 1);
  for (const char* spec : {"dense(bits=8)", "dense(bits=8)|zstd(0)", "dense(bits=4,hadamard=3)|zstd(0)"}) {
    const GroupCodec codec = MakeCodec(spec);
    std::vector<float> zero(layout.total()), d = random.Normals(layout.total(), 1);
    GroupScratch scratch;
    FrameBody body;
    DecodedFrame used;
    std::string frame;
    for (int i = 0; i < 4; ++i) {
      if (i == 2) std::fill(d.begin() + 5000, d.end(), 0.0f);
      if (i == 3) std::fill(d.begin(), d.end(), 0.0f);
      ASSERT_TRUE(codec.EncodeInto(layout, d, zero, &scratch, &frame).ok());
      EXPECT_TRUE(frame == *codec.Encode(layout, d, zero)) << spec << ", " << i;
      ASSERT_TRUE(codec.DecodeInto(layout, frame, &body, &used).ok());
      const DecodedFrame fresh = *codec.Decode(layout, frame);
      for (int t = 0; t < 2; ++t) {
        EXPECT_EQ(used.tensors[t].form, fresh.tensors[t].form) << spec << ", " << i;
        EXPECT_EQ(used.tensors[t].mantissas, fresh.tensors[t].mantissas) << spec << ", " << i;
      }
    }
  }
}

#if defined(__SSE2__)
TEST(GroupCodecTest, AFloatingPointModeThatFlushesSubnormalsChangesNothing) {
  TestRandom random(9);
  const Layout layout({(1 << 16) + 100, 5}, 1);
  const std::vector<float> zero(layout.total()), d = random.Normals(layout.total(), 0x1p-136);
  for (const char* spec : kSpecs) {
    const std::string expected = *MakeCodec(spec).Encode(layout, zero, d);
    const unsigned mode = _mm_getcsr();
    _mm_setcsr(mode | 0x8040u);
    for (SimdPath path : kAllSimdPaths) {
      if (!HasSimdPath(path)) continue;
      EXPECT_TRUE(*MakeCodec(spec, path, 2).Encode(layout, zero, d) == expected) << spec;
    }
    EXPECT_EQ(_mm_getcsr() & 0x8040u, 0x8040u);
    _mm_setcsr(mode);
  }
}
#endif

TEST(GroupCodecTest, TheFirstValueThatIsNotFiniteIsNamed) {
  const Layout layout({(1 << 20) + 5000, 70}, 1);
  std::vector<float> anchor(layout.total(), 1.0f), parameters(layout.total(), 0.5f);
  parameters.back() = parameters[(1 << 20) + 4999] = std::numeric_limits<float>::quiet_NaN();
  for (const char* spec : kSpecs) {
    for (int threads : {1, 4}) {
      EXPECT_EQ(
          MakeCodec(spec, BestSimdPath(), threads).Encode(layout, anchor, parameters).status().message(),
          "encode: the difference of tensor 0 at position 1053575 is not finite (anchor finite, parameter "
          "NaN)");
    }
  }
}

}  // namespace
}  // namespace isthmus
