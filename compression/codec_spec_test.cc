#include "compression/codec_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isthmus {
namespace {

using ::testing::HasSubstr;

TEST(CodecSpecTest, CanonicalTextIsReadBackAsItself) {
  for (const char* text : {"topk(k=512,block=4096)|levels(bits=1)|gaps|zstd(1)",
                           "topk(k=1,block=4096)|levels(bits=2)|gaps|zstd(19)",
                           "topk(k=4096,block=4096)|levels(bits=3)|gaps|zstd(3)",
                           "topk(k=64,block=4096,share=energy)|levels(bits=auto)|gaps|zstd(1)",
                           "mask(k=64,block=4096,seed=7)|levels(bits=2)|zstd(1)", "dense(bits=24)|zstd(1)",
                           "dense(bits=8,group=64)|zstd(0)", "dense(bits=4,group=128)|zstd(9)",
                           "dense(bits=4,group=64,hadamard=2147483647)|zstd(1)", "fp32|zstd(1)",
                           "bf16|zstd(3)", "fp8(group=128)|zstd(1)", "nf4(group=4096)|zstd(1)"}) {
    const auto spec = ParseSpecText(text);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(SpecText(*spec), text);
    EXPECT_EQ(*ParseSpecText(SpecText(*spec)), *spec);
  }
}

TEST(CodecSpecTest, LeftOutTransformsTakeTheirDefaults) {
  const char* canonical = "topk(k=64,block=4096)|levels(bits=1)|gaps|zstd(1)";
  for (const char* text : {"topk(k=64)", "topk(k=64)|levels", "topk(k=64)|zstd(1)", "topk(k=64)|gaps",
                           " topk( block = 4096 , k = 64 ) | levels(bits=1) | zstd "}) {
    const auto spec = ParseSpecText(text);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(SpecText(*spec), canonical);
  }
  const struct {
    const char* text;
    const char* canonical;
  } cases[] = {
      {"dense", "dense(bits=24)|zstd(1)"},
      {"dense(bits=8)", "dense(bits=8,group=64)|zstd(1)"},
      {"dense(hadamard=0,bits=4)|zstd(2)", "dense(bits=4,group=64,hadamard=0)|zstd(2)"},
      {"topk(k=9,share=uniform)", "topk(k=9,block=4096)|levels(bits=1)|gaps|zstd(1)"},
      {"mask(k=9)", "mask(k=9,block=4096,seed=0)|levels(bits=1)|zstd(1)"},
      {"fp32", "fp32|zstd(1)"},
      {"bf16", "bf16|zstd(1)"},
      {"fp8", "fp8(group=128)|zstd(1)"},
      {"nf4 | zstd", "nf4(group=64)|zstd(1)"},
  };
  for (const auto& c : cases) {
    const auto spec = ParseSpecText(c.text);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(SpecText(*spec), c.canonical);
  }
}

TEST(CodecSpecTest, NumbersAreWhatTheTextSays) {
  const CodecSpec energy = *ParseSpecText("topk(k=32,share=energy)|levels(bits=auto)|zstd(4)");
  EXPECT_EQ(energy.kind, CodecSpec::Kind::kTopK);
  EXPECT_EQ(energy.k, 32);
  EXPECT_EQ(energy.share, CodecSpec::Share::kEnergy);
  EXPECT_EQ(energy.value_bits, kAutoValueBits);
  EXPECT_EQ(energy.zstd_level, 4);
  const CodecSpec int4 = *ParseSpecText("dense(bits=4,group=32,hadamard=5)");
  EXPECT_EQ(int4.value_bits, 4);
  EXPECT_EQ(int4.group, 32);
  EXPECT_EQ(int4.hadamard, 5);
  EXPECT_EQ(ParseSpecText("dense(bits=4)")->hadamard, kNoHadamard);
  EXPECT_EQ(ParseSpecText("mask(k=1,seed=3)")->seed, 3);
}

TEST(CodecSpecTest, IntegersAddAndFloatsAreOnlyCarried) {
  for (const char* text : {"topk(k=1)", "mask(k=1)", "dense", "dense(bits=8)", "dense(bits=4,hadamard=1)"}) {
    EXPECT_TRUE(IsSummable(*ParseSpecText(text))) << text;
    EXPECT_FALSE(IsLossless(*ParseSpecText(text))) << text;
  }
  for (const char* text : {"fp32", "bf16", "fp8", "nf4"}) {
    EXPECT_FALSE(IsSummable(*ParseSpecText(text))) << text;
    EXPECT_EQ(IsLossless(*ParseSpecText(text)), std::string(text) == "fp32") << text;
  }
}

TEST(CodecSpecTest, ErrorsPointAtTheCharacter) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"", "character 1: the name of a transform is expected"},
      {"tok(k=1)", "character 1: \"tok\" begins no codec"},
      {" garbage(", "character 2: \"garbage\" begins no codec; these do: topk, mask"},
      {"topk", "character 1: topk needs k"},
      {"topk()", "character 6: the name of a setting is expected"},
      {"topk(", "character 6: the name of a setting is expected"},
      {"topk(k=64,)", "character 11: the name of a setting is expected"},
      {"topk(k=64)|zstd()", "character 17: a number is expected"},
      {"topk(k=64)|zstd(4294967296)", "character 17: zstd must be 0 to 19"},
      {"dense(bits=4,hadamard=99999999999999999999)", "character 23: dense hadamard must be 0 to 2147483647"},
      {"topk(k=0)", "character 8: topk k must be 1 to 4096"},
      {"topk(k=4097)", "character 8: topk k must be 1 to 4096"},
      {"topk(k=99999999999999999999)", "character 8: topk k must be 1 to 4096"},
      {"topk(k=64,block=1024)", "character 17: topk block must be 4096"},
      {"topk(k=64,kk=1)", "character 11: topk has no setting kk"},
      {"topk(k=64,k=64)", "character 11: k is given twice"},
      {"topk(k 64)", "character 8: = is expected after k"},
      {"topk(k=)", "character 8: a number is expected"},
      {"topk(k=64", "character 10: , or ) is expected"},
      {"topk(k=64)|levels(bits=4)", "character 24: levels bits must be 1 to 3 or auto"},
      {"topk(k=64)|levels(bits=0)", "character 24: levels bits must be 1 to 3 or auto"},
      {"topk(k=64)|levels(bits=many)", "character 24: levels bits must be 1 to 3 or auto"},
      {"topk(k=auto)", "character 8: topk k must be 1 to 4096"},
      {"topk(k=64,share=greed)", "character 17: topk share must be uniform or energy"},
      {"topk(k=64,share=1)", "character 17: topk share must be uniform or energy"},
      {"topk(k=64,seed=1)", "character 11: topk has no setting seed"},
      {"topk(k=64,64)", "character 11: topk has no setting without a name"},
      {"mask", "character 1: mask needs k, as in mask(k=64)"},
      {"mask(k=64,seed=2147483648)", "character 16: mask seed must be 0 to 2147483647"},
      {"mask(k=64)|levels(bits=auto)", "character 24: levels bits must be 1 to 3"},
      {"mask(k=64)|gaps", "character 12: \"gaps\" does not belong here; the order is mask|levels|zstd"},
      {"topk(k=64)|zstd(20)", "character 17: zstd must be 0 to 19"},
      {"topk(k=64)|zstd(1)|gaps",
       "character 20: \"gaps\" does not belong here; the order is topk|levels|gaps|zstd"},
      {"topk(k=64)|", "character 12: the name of a transform is expected"},
      {"topk(k=64) levels", "character 12: | or the end is expected"},
      {"dense(bits=16)", "character 12: dense bits must be 24, 8 or 4"},
      {"dense(group=64)", "character 13: dense group goes with bits=8 and bits=4 only"},
      {"dense(bits=8,group=48)", "character 20: dense group must be a power of two, 16 to 4096"},
      {"dense(bits=8,group=8)", "character 20: dense group must be a power of two, 16 to 4096"},
      {"dense(bits=8,hadamard=7)", "character 23: dense hadamard goes with bits=4 only"},
      {"fp32(group=64)", "character 6: fp32 has no setting group"},
      {"fp8(bits=8)", "character 5: fp8 has no setting bits"},
      {"nf4(group=8192)", "character 11: nf4 group must be a power of two, 16 to 4096"},
      {"bf16|levels", "character 6: \"levels\" does not belong here; the order is bf16|zstd"},
      {"zstd(1)", "character 1: \"zstd\" begins no codec; these do: topk, mask, dense, fp32, bf16, fp8, nf4"},
      {"dense|levels", "character 7: \"levels\" does not belong here; the order is dense|zstd"},
  };
  for (const auto& c : cases) {
    const auto spec = ParseSpecText(c.text);
    EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(std::string(spec.status().message()), HasSubstr(c.message)) << c.text;
  }
}

}  // namespace
}  // namespace isthmus
