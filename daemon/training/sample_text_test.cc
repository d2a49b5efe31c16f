#include "daemon/training/sample_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/training/toy_trainer.h"

namespace isthmus {
namespace {

std::unique_ptr<ToyTrainer> MakeToy(int64_t vocabulary) {
  ToyOptions options;
  options.vocabulary = vocabulary;
  const TensorTable table = ToyTensorTable(8);
  return ToyTrainer::Create(table, options, table.InitialValues(0)).value();
}

TEST(PrintableText, KeepsTextAndMarksWhatIsNone) {
  EXPECT_EQ(PrintableText("In the beginning\n\tGod"), "In the beginning\n\tGod");
  EXPECT_EQ(PrintableText("a\r\x01\x7f"), "a???");
  EXPECT_EQ(PrintableText("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"),
            "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(PrintableText("\xc3"), "?");                 // cut off
  EXPECT_EQ(PrintableText("\xc0\x80"), "??");            // overlong
  EXPECT_EQ(PrintableText("\xed\xa0\x80"), "???");       // surrogate
  EXPECT_EQ(PrintableText("\xf4\x90\x80\x80"), "????");  // beyond the last code point
  EXPECT_EQ(PrintableText(""), "");
}

TEST(SampleText, DrawsTheAskedNumberOfCharacters) {
  const auto toy = MakeToy(64);  // 0 … 63: one byte each
  SampleTextOptions options;
  options.characters = 40;
  const auto text = SampleText(toy.get(), toy->parameters(), options);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->size(), 40);
  EXPECT_EQ(*text, SampleText(toy.get(), toy->parameters(), options).value());
}

TEST(SampleText, RefusesAModelWhoseTokensAreNoBytesAndAnEmptyPrompt) {
  const auto toy = MakeToy(100000);
  EXPECT_THAT(std::string(SampleText(toy.get(), toy->parameters(), {}).status().message()),
              testing::HasSubstr("is no byte of a text"));
  SampleTextOptions options;
  options.prompt = "";
  EXPECT_EQ(SampleText(toy.get(), toy->parameters(), options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace isthmus
