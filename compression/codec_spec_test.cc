#include "compression/codec_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isthmus {
namespace {

using ::testing::HasSubstr;

TEST(CodecSpecTest, CanonicalTextIsReadBackAsItself) {
  for (const char* text : {"topk(k=512,block=4096)|levels(bits=1)|gaps|zstd(1)",
                           "topk(k=1,block=4096)|levels(bits=2)|gaps|zstd(19)",
                           "topk(k=4096,block=4096)|levels(bits=3)|gaps|zstd(3)", "dense(bits=24)|zstd(1)"}) {
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
  EXPECT_EQ(SpecText(*ParseSpecText("dense")), "dense(bits=24)|zstd(1)");
}

TEST(CodecSpecTest, ErrorsPointAtTheCharacter) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"", "character 1: the name of a transform is expected"},
      {"tok(k=1)", "character 1: \"tok\" begins no codec"},
      {"topk", "character 1: topk needs k"},
      {"topk(k=0)", "character 8: topk k must be 1 to 4096"},
      {"topk(k=4097)", "character 8: topk k must be 1 to 4096"},
      {"topk(k=99999999999999999999)", "character 8: number too large"},
      {"topk(k=64,block=1024)", "character 17: topk block must be 4096"},
      {"topk(k=64,kk=1)", "character 14: topk has no setting kk"},
      {"topk(k=64,k=64)", "character 11: k is given twice"},
      {"topk(k 64)", "character 8: = is expected after k"},
      {"topk(k=)", "character 8: a number is expected"},
      {"topk(k=64", "character 10: , or ) is expected"},
      {"topk(k=64)|levels(bits=4)", "character 24: levels bits must be 1 to 3"},
      {"topk(k=64)|zstd(0)", "character 17: zstd must be 1 to 19"},
      {"topk(k=64)|zstd(1)|gaps",
       "character 20: \"gaps\" does not belong here; the order is topk|levels|gaps|zstd"},
      {"topk(k=64)|", "character 12: the name of a transform is expected"},
      {"topk(k=64) levels", "character 12: | or the end is expected"},
      {"dense(bits=16)", "character 12: dense bits must be 24"},
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
