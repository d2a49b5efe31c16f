#include "daemon/training/token_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <set>

namespace isthmus {
namespace {

using ::testing::HasSubstr;

class TokenFileTest : public testing::Test {
 protected:
  std::string Write(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    return path_;
  }
  static std::string Counting(int64_t n) {
    std::string text;
    for (int64_t i = 0; i < n; ++i) text.push_back(static_cast<char>(i % 251));
    return text;
  }
  static TokenFileOptions Options(int64_t context, int64_t vocabulary = 256) {
    TokenFileOptions o;
    o.context = context;
    o.vocabulary = vocabulary;
    return o;
  }
  static std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

  const std::string path_ =
      testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name() + ".tokens";
};

TEST_F(TokenFileTest, SequenceIStartsAtTokenITimesContext) {
  const auto file = TokenFile::Open(Write(Counting(10000)), Options(10));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->tokens(), 10000);
  // 9,800 tokens train: 979 sequences of 11.
  EXPECT_EQ((*file)->training_sequences(), 979);
  EXPECT_EQ((*file)->held_out_sequences(), 19);
  const auto batch = (*file)->TrainingBatch({3, 0});
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(batch->sequences, 2);
  EXPECT_EQ(batch->length, 10);
  EXPECT_THAT(batch->tokens, testing::ElementsAre(30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40,  //
                                                  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
}

TEST_F(TokenFileTest, TheHeldOutPartIsTheEndAndNeverTrainedOn) {
  const auto file = TokenFile::Open(Write(Counting(10000)), Options(10));
  ASSERT_TRUE(file.ok());
  const std::vector<Batch> whole = (*file)->HeldOutBatches(true);
  ASSERT_EQ(whole.size(), 1);
  EXPECT_EQ(whole[0].sequences, 19);
  EXPECT_EQ(whole[0].tokens[0], 9800 % 251);
  const auto last = (*file)->TrainingBatch({978});
  ASSERT_TRUE(last.ok());
  EXPECT_EQ(last->tokens.back(), 9790 % 251);
  EXPECT_EQ((*file)->TrainingBatch({979}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ((*file)->TrainingBatch({-1}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(TokenFileTest, TheSubsetIsFixedAndHas8192Tokens) {
  const auto file = TokenFile::Open(Write(Counting(1000000)), Options(16));
  ASSERT_TRUE(file.ok());
  int64_t tokens = 0;
  for (const Batch& b : (*file)->HeldOutBatches(false)) {
    tokens += b.sequences * b.length;
    EXPECT_LE(b.sequences, 32);
    EXPECT_EQ(b.tokens.size(), b.sequences * 17);
  }
  EXPECT_EQ(tokens, 8192);
  EXPECT_EQ((*file)->HeldOutBatches(false)[3].tokens, (*file)->HeldOutBatches(false)[3].tokens);
  EXPECT_NE((*file)->HeldOutBatches(false)[0].tokens, (*file)->HeldOutBatches(true)[0].tokens);
}

TEST_F(TokenFileTest, TheHeldOutPartIsCappedAndAtLeastOneSequence) {
  TokenFileOptions options = Options(10);
  options.held_out_most = 50;
  EXPECT_EQ(TokenFile::Open(Write(Counting(10000)), options).value()->held_out_sequences(), 4);
  EXPECT_EQ(TokenFile::Open(Write(Counting(30)), Options(10)).value()->held_out_sequences(), 1);
}

TEST_F(TokenFileTest, ReadsTokensOfTwoAndFourBytes) {
  std::string two, four;
  for (int i = 0; i < 1000; ++i) {
    const uint16_t a = 300 + i;
    const uint32_t b = 70000 + i;
    two.append(reinterpret_cast<const char*>(&a), 2);
    four.append(reinterpret_cast<const char*>(&b), 4);
  }
  TokenFileOptions options = Options(4, 80000);
  options.form = TokenForm::kUint16;
  EXPECT_THAT(TokenFile::Open(Write(two), options).value()->TrainingBatch({1})->tokens,
              testing::ElementsAre(304, 305, 306, 307, 308));
  options.form = TokenForm::kUint32;
  EXPECT_THAT(TokenFile::Open(Write(four), options).value()->TrainingBatch({1})->tokens,
              testing::ElementsAre(70004, 70005, 70006, 70007, 70008));
  options.vocabulary = 70900;
  EXPECT_THAT(MessageOf(TokenFile::Open(path_, options).status()),
              HasSubstr("token 70900 at offset 900 is beyond the vocabulary of 70900"));
  Write(four + "x");
  EXPECT_THAT(MessageOf(TokenFile::Open(path_, options).status()), HasSubstr("4001 bytes, no whole number"));
}

TEST_F(TokenFileTest, BadFilesAreNamedWithWhatIsWrong) {
  const auto missing = TokenFile::Open(path_ + ".none", Options(10)).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(missing), HasSubstr(path_ + ".none"));
  EXPECT_THAT(MessageOf(TokenFile::Open(Write(""), Options(10)).status()), HasSubstr(path_ + " is empty"));
  EXPECT_THAT(
      MessageOf(TokenFile::Open(Write(Counting(21)), Options(10)).status()),
      HasSubstr("has 21 tokens, too few for one training and one held-out sequence of 10 (22 tokens)"));
  EXPECT_THAT(MessageOf(TokenFile::Open(testing::TempDir(), Options(10)).status()),
              HasSubstr("is not a regular file"));
  EXPECT_THAT(MessageOf(TokenFile::Open(Write(Counting(1000)), Options(10, 200)).status()),
              HasSubstr("token 200 at offset 200 is beyond the vocabulary of 200"));
  EXPECT_EQ(TokenFile::Open(path_, Options(0)).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(TokenFileTest, AChangedFileIsNoticed) {
  const std::string text = Counting(1000);
  const auto file = TokenFile::Open(Write(text), Options(10));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE((*file)->CheckUnchanged().ok());

  // Touched, but the same bytes.
  const timespec times[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  EXPECT_TRUE((*file)->CheckUnchanged().ok());

  std::string other = text;
  other[500] ^= 1;
  Write(other);
  ASSERT_EQ(utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  EXPECT_EQ((*file)->CheckUnchanged().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf((*file)->CheckUnchanged()), HasSubstr(path_ + " changed since the run began"));

  Write(text.substr(0, 900));
  EXPECT_THAT(MessageOf((*file)->CheckUnchanged()), HasSubstr("it has 900 bytes and had 1000"));
  EXPECT_EQ((*file)->TrainingBatch({0}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE((*file)->HeldOutBatches(true).empty());

  std::remove(path_.c_str());
  EXPECT_EQ((*file)->CheckUnchanged().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(TokenFileTest, DigestIsThatOfTheBytes) {
  const std::string text = Counting(1000);
  EXPECT_EQ(TokenFile::Open(Write(text), Options(10)).value()->digest(), DigestOf(absl::string_view(text)));
}

TEST(TokenForm, ParsesTheThreeForms) {
  EXPECT_EQ(ParseTokenForm("bytes").value(), TokenForm::kBytes);
  EXPECT_EQ(ParseTokenForm("uint16").value(), TokenForm::kUint16);
  EXPECT_EQ(ParseTokenForm("uint32").value(), TokenForm::kUint32);
  EXPECT_FALSE(ParseTokenForm("utf8").ok());
}

}  // namespace
}  // namespace isthmus
