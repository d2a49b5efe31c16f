#include "daemon/training/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace isthmus {
namespace {

using ::testing::HasSubstr;

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

TEST(Batch, AcceptsRowsOfLengthPlusOne) { EXPECT_TRUE(CheckBatchTokens({2, 2, {0, 1, 2, 3, 4, 5}}, 6).ok()); }

TEST(Batch, RefusesCountsThatDoNotFit) {
  EXPECT_THAT(MessageOf(CheckBatchTokens({2, 2, {0, 1, 2}}, 6)),
              HasSubstr("2 sequences of length 2 has 3 tokens"));
  EXPECT_FALSE(CheckBatchTokens({0, 2, {}}, 6).ok());
  EXPECT_FALSE(CheckBatchTokens({1, 0, {1}}, 6).ok());
  EXPECT_FALSE(CheckBatchTokens({int64_t{1} << 62, 3, {0, 0, 0, 0}}, 6).ok());
}

TEST(Batch, NamesATokenBeyondTheVocabulary) {
  EXPECT_THAT(MessageOf(CheckBatchTokens({2, 2, {0, 1, 2, 3, 6, 5}}, 6)),
              HasSubstr("token 6 in row 1 at 1 is beyond the vocabulary of 6"));
}

TEST(Batch, SampleRequestsAreChecked) {
  EXPECT_TRUE(CheckSampleRequest({1, 2}, 0, 0, 3).ok());
  EXPECT_THAT(MessageOf(CheckSampleRequest({}, 5, 1, 3)), HasSubstr("prompt is empty"));
  EXPECT_THAT(MessageOf(CheckSampleRequest({1, 3}, 5, 1, 3)), HasSubstr("token 3 at 1 of the prompt"));
  EXPECT_THAT(MessageOf(CheckSampleRequest({1}, -1, 1, 3)), HasSubstr("count is -1"));
  EXPECT_THAT(MessageOf(CheckSampleRequest({1}, 1, NAN, 3)), HasSubstr("temperature"));
}

TEST(Batch, MomentsAreEmptyOrFitAndFinite) {
  EXPECT_TRUE(CheckMoments({}, 2).ok());
  EXPECT_TRUE(CheckMoments({5, {1, 2}, {3, 4}}, 2).ok());
  EXPECT_THAT(MessageOf(CheckMoments({5, {1, 2}, {3}}, 2)), HasSubstr("sizes 2 and 1, the table has 2"));
  EXPECT_FALSE(CheckMoments({5, {}, {}}, 2).ok());
  EXPECT_FALSE(CheckMoments({-1, {1, 2}, {3, 4}}, 2).ok());
  EXPECT_THAT(MessageOf(CheckMoments({5, {1, 2}, {3, INFINITY}}, 2)), HasSubstr("value 1 is not finite"));
}

}  // namespace
}  // namespace isthmus
