#include "compression/carry_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "compression/carry_forms.h"
#include "compression/codec_spec.h"
#include "compression/test_random.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kMax = std::numeric_limits<float>::max();
constexpr const char* kSpecs[] = {
    "fp32",        "fp32|zstd(0)",   "bf16|zstd(3)",  "fp8",   "fp8(group=16)|zstd(0)",
    "nf4",         "nf4(group=128)", "dense(bits=8)", "dense", "dense(bits=4,hadamard=7)",
    "topk(k=512)", "mask(k=64)"};

std::unique_ptr<CarryCodec> Make(const std::string& spec) { return std::move(ParseCarrySpec(spec)).value(); }

std::vector<float> RoundTrip(const std::string& spec, const std::vector<float>& values) {
  const auto codec = Make(spec);
  const auto bytes = codec->Encode(values);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_LE(static_cast<int64_t>(bytes->size()), codec->BoundBytes(static_cast<int64_t>(values.size())));
  std::vector<float> back(values.size(), -77.0f);
  const absl::Status read = codec->Decode(*bytes, absl::MakeSpan(back));
  EXPECT_TRUE(read.ok()) << spec << ": " << read;
  return back;
}

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

double SignalToNoise(const std::vector<float>& values, const std::vector<float>& back) {
  double energy = 0, error = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    energy += double{values[i]} * values[i];
    error += std::pow(double{values[i]} - back[i], 2);
  }
  return 10 * std::log10(energy / error);
}

TEST(CarryCodecTest, EverySpecNamesItselfAndCarriesEveryCount) {
  TestRandom random(1);
  for (const char* spec : kSpecs) {
    const auto codec = Make(spec);
    EXPECT_EQ(codec->spec(), SpecText(*ParseSpecText(spec)));
    for (int64_t count : {0, 1, 3, 63, 64, 65, 127, 129, 4095, 4096, 4097}) {
      const std::vector<float> values = random.Normals(count, 1);
      const std::vector<float> back = RoundTrip(spec, values);
      double dot = 0;
      for (int64_t i = 0; i < count; ++i) dot += double{values[i]} * back[i];
      EXPECT_GE(dot, 0) << spec << ", " << count;
    }
    EXPECT_EQ(RoundTrip(spec, std::vector<float>(200)), std::vector<float>(200)) << spec;
  }
}

TEST(CarryCodecTest, Fp32CarriesEveryBit) {
  TestRandom random(2);
  std::vector<float> values = {
      0.0f, -0.0f, kInf, -kInf, kMax, 0x1p-149f, FromBits(0x7F800001), FromBits(0xFFC12345)};
  for (int i = 0; i < 10000; ++i) values.push_back(FromBits(static_cast<uint32_t>(random.Next())));
  const std::vector<float> back = RoundTrip("fp32", values);
  EXPECT_EQ(std::memcmp(back.data(), values.data(), sizeof(float) * values.size()), 0);
}

TEST(CarryCodecTest, Bf16RoundsToTheNearestHalvesToEven) {
  const struct {
    uint32_t in, out;
  } cases[] = {{0x3F800000, 0x3F800000}, {0x3F808000, 0x3F800000}, {0x3F808001, 0x3F810000},
               {0x3F818000, 0x3F820000}, {0xBF818000, 0xBF820000}, {0x00008000, 0x00000000},
               {0x00018000, 0x00020000}, {0x7F7FFFFF, 0x7F800000}, {0x7F800000, 0x7F800000},
               {0xFF800000, 0xFF800000}, {0x7F800001, 0x7FC00000}, {0xFFC10001, 0xFFC10000}};
  for (const auto& c : cases) {
    EXPECT_EQ(BitsOf(RoundTrip("bf16", {FromBits(c.in)})[0]), c.out) << std::hex << c.in;
  }
}

TEST(CarryCodecTest, EveryEightBitFloatIsItsOwnNearest) {
  for (int code = 0; code < 256; ++code) {
    if ((code & 0x7F) == 0x7F) continue;  // NaN
    EXPECT_EQ(E4M3Of(FloatOfE4M3(static_cast<uint8_t>(code))), code);
  }
  EXPECT_EQ(FloatOfE4M3(0x7E), 448);
  EXPECT_EQ(FloatOfE4M3(1), 0x1p-9f);
  EXPECT_EQ(E4M3Of(464), 0x7E);        // half way to 480, which there is not
  EXPECT_EQ(E4M3Of(17), 0x58);         // between 16 and 18: even
  EXPECT_EQ(E4M3Of(19), 0x5A);         // between 18 and 20
  EXPECT_EQ(E4M3Of(0x1.fp-7f), 0x08);  // up into the normal ones
}

TEST(CarryCodecTest, TheLargestOfAGroupUsesTheRange) {
  std::vector<float> values(128);
  values[0] = 464;
  values[1] = -1;
  EXPECT_EQ(RoundTrip("fp8", values)[0], 448);
  values[0] = 465;  // twice the scale: 232.5 to 240
  EXPECT_EQ(RoundTrip("fp8", values)[0], 480);
  EXPECT_EQ(RoundTrip("fp8", values)[1], -1);
  EXPECT_EQ(RoundTrip("nf4", {2, -2, 1.4f, 0}), (std::vector<float>{2, -2, 2 * 0.722956836f, 0}));
  for (const char* spec : {"fp8", "nf4"}) {
    const std::vector<float> back = RoundTrip(spec, {kMax, -kMax, 0x1p-149f});
    EXPECT_GT(back[0], kMax / 2) << spec;
    EXPECT_LT(back[1], -kMax / 2) << spec;
    EXPECT_TRUE(std::isfinite(back[0]) && std::isfinite(back[1])) << spec;
    EXPECT_TRUE(std::isfinite(RoundTrip(spec, {0x1p-149f, -0x1p-130f})[0])) << spec;
  }
}

TEST(CarryCodecTest, NaNAndInfAreRefusedWhereTheyCannotBeCarried) {
  for (const char* spec : {"fp8", "nf4"}) {
    for (float bad : {std::numeric_limits<float>::quiet_NaN(), kInf, -kInf}) {
      const auto bytes = Make(spec)->Encode({1, 2, bad});
      EXPECT_EQ(bytes.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(bytes.status().message()),
                  HasSubstr(std::isnan(bad) ? "value 2 is NaN" : "value 2 is Inf"));
    }
  }
  EXPECT_EQ(Make("dense(bits=8)")->Encode({1, kInf}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CarryCodecTest, ErrorsAreThoseOfTheTable) {
  // ALGORITHMS C.5, less a decibel of noise; bf16 has 8 bits: 6.02 · 8 + 4.8 and more.
  const struct {
    const char* spec;
    double least[3];
  } cases[] = {
      {"fp8(group=128)", {30.8, 31.1, 31.4}}, {"nf4(group=64)", {19.7, 18.7, 17.2}}, {"bf16", {50, 50, 50}}};
  const auto gaussian = [](TestRandom* r) {
    return std::sqrt(-2 * std::log(1 - r->Uniform())) * std::cos(6.283185307 * r->Uniform());
  };
  TestRandom random(6);
  std::vector<float> looks[3];
  for (int i = 0; i < 64 * 4096; ++i) {
    looks[0].push_back(static_cast<float>(gaussian(&random)));
    looks[1].push_back(static_cast<float>((random.Chance(0.5) ? 1 : -1) * std::log(1 - random.Uniform())));
    double chi = 0;
    for (int k = 0; k < 3; ++k) chi += std::pow(gaussian(&random), 2);
    looks[2].push_back(static_cast<float>(gaussian(&random) / std::sqrt(chi / 3)));
  }
  for (const auto& c : cases) {
    for (int look = 0; look < 3; ++look) {
      const double measured = SignalToNoise(looks[look], RoundTrip(c.spec, looks[look]));
      EXPECT_GT(measured, c.least[look]) << c.spec << ", look " << look;
      EXPECT_LT(measured, c.least[look] + 8) << c.spec << ", look " << look;
    }
  }
}

TEST(CarryCodecTest, EveryCutAndEveryFlippedBitIsFound) {
  TestRandom random(3);
  const std::vector<float> values = random.Normals(70, 1);
  std::vector<float> back(values.size());
  for (const char* spec : kSpecs) {
    const auto codec = Make(spec);
    const std::string bytes = *codec->Encode(values);
    for (size_t cut = 0; cut < bytes.size(); ++cut) {
      ASSERT_EQ(codec->Decode(bytes.substr(0, cut), absl::MakeSpan(back)).code(),
                absl::StatusCode::kDataLoss);
    }
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      std::string flipped = bytes;
      flipped[bit / 8] ^= static_cast<char>(1 << (bit % 8));
      ASSERT_EQ(codec->Decode(flipped, absl::MakeSpan(back)).code(), absl::StatusCode::kDataLoss) << spec;
    }
  }
}

TEST(CarryCodecTest, OtherCountsSpecsAndSizesAreRefused) {
  const std::vector<float> values(70, 1.5f);
  std::vector<float> back(71);
  for (const char* spec : kSpecs) {
    const auto codec = Make(spec);
    const std::string bytes = *codec->Encode(values);
    if (IsSummable(*ParseSpecText(spec))) continue;  // what counts there is in the streams
    EXPECT_THAT(std::string(codec->Decode(bytes, absl::MakeSpan(back)).message()),
                HasSubstr("70 of them, 71 are expected"));
    EXPECT_EQ(codec->Decode(*Make("bf16|zstd(19)")->Encode(values), absl::MakeSpan(back).first(70)).code(),
              absl::StatusCode::kInvalidArgument);
    const std::string huge(codec->BoundBytes(70) + 1, 'x');
    EXPECT_THAT(std::string(codec->Decode(huge, absl::MakeSpan(back).first(70)).message()),
                HasSubstr("at most"));
  }
  EXPECT_FALSE(ParseCarrySpec("fp9").ok());
}

#if defined(__SSE2__)
TEST(CarryCodecTest, AFloatingPointModeThatFlushesSubnormalsChangesNothing) {
  TestRandom random(9);
  const std::vector<float> values = random.Normals(5000, 0x1p-133);
  for (const char* spec : kSpecs) {
    const auto codec = Make(spec);
    const std::string bytes = *codec->Encode(values);
    const std::vector<float> expected = RoundTrip(spec, values);
    const unsigned mode = _mm_getcsr();
    _mm_setcsr(mode | 0x8040u);
    const std::string again = *codec->Encode(values);
    std::vector<float> back(values.size());
    const absl::Status read = codec->Decode(bytes, absl::MakeSpan(back));
    _mm_setcsr(mode);
    EXPECT_TRUE(read.ok());
    EXPECT_TRUE(again == bytes) << spec;
    EXPECT_EQ(std::memcmp(back.data(), expected.data(), sizeof(float) * back.size()), 0) << spec;
  }
}
#endif

}  // namespace
}  // namespace isthmus
