#include "daemon/coordinator/told_fields.h"

#include <limits>

#include "gtest/gtest.h"

namespace isthmus {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

ContributionHeader GoodHeader() {
  ContributionHeader h;
  h.mutable_key()->set_round(3);
  h.set_base_digest(std::string(16, 'b'));
  h.set_frame_digest(std::string(16, 'f'));
  h.set_tokens(6400);
  h.set_steps(10);
  h.set_tokens_per_step(640);
  h.set_inner_steps(40);
  h.set_base_round(2);
  h.set_loss(2.5);
  return h;
}

TEST(ToldFieldsTest, ASitesNameIsWhatCanBePrintedAnywhere) {
  EXPECT_TRUE(CheckSiteName("lab-2.example_org").ok());
  EXPECT_TRUE(CheckSiteName(std::string(128, 'a')).ok());
  for (const std::string& bad :
       {std::string(), std::string(129, 'a'), std::string("a b"), std::string("a\nb"),
        std::string("\x1b[31mred"), std::string("a/1"), std::string("\xc3\xa4"), std::string("a\0b", 3)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckSiteName(bad))) << bad;
  }
}

TEST(ToldFieldsTest, ATextIsOneLineCutBetweenCharacters) {
  EXPECT_EQ(OneLine("training"), "training");
  EXPECT_EQ(OneLine("\x1b[2Jtwo\nlines"), " [2Jtwo lines");
  EXPECT_EQ(OneLine(std::string(1000, 'x')), std::string(200, 'x'));
  EXPECT_EQ(OneLine(std::string(199, 'x') + "\xc3\xa4"), std::string(199, 'x'));
  EXPECT_EQ(OneLine(std::string(198, 'x') + "\xc3\xa4" + "y"), std::string(198, 'x') + "\xc3\xa4");
}

TEST(ToldFieldsTest, AHeaderWithANumberThatCannotBeIsRefusedByName) {
  EXPECT_TRUE(CheckTold(GoodHeader()).ok());
  ContributionHeader h = GoodHeader();
  h.set_tokens(-1);
  EXPECT_EQ(CheckTold(h).message(), "tokens of -1 cannot be");
  h = GoodHeader();
  h.set_decayed_square_sum(kNan);
  EXPECT_EQ(CheckTold(h).message(), "decayed_square_sum cannot be");
  h = GoodHeader();
  h.set_steps(kMost);
  EXPECT_EQ(CheckTold(h).message(), "steps of 9223372036854775807 cannot be");
  h = GoodHeader();
  h.set_loss(kNan);
  EXPECT_TRUE(CheckTold(h).ok());
  h = GoodHeader();
  h.mutable_key()->set_round(kMost);
  EXPECT_EQ(CheckTold(h).message(), "there is no round 9223372036854775807");
  h = GoodHeader();
  h.mutable_key()->set_fragment(7);
  EXPECT_EQ(CheckTold(h).message(), "there is no fragment 7");
  h = GoodHeader();
  h.clear_base_digest();
  EXPECT_EQ(CheckTold(h).message(), "base_digest is not 16 bytes");
}

}  // namespace
}  // namespace isthmus
