#include "daemon/app/run_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace isthmus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Parsed {
  bool is_whole = false;
  RunFile run;
  RunLocations locations;
  std::vector<RunFinding> findings;

  // "line:column message", for comparisons.
  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    for (const RunFinding& f : findings) lines.push_back(absl::StrCat(f.line, ":", f.column, " ", f.message));
    return lines;
  }
};

void Parse(const std::string& text, Parsed* out) {
  out->is_whole = ParseRunText(text, &out->run, &out->locations, &out->findings);
}

TEST(RunTextTest, AGoodTextIsReadWithThePlacesOfItsFields) {
  Parsed parsed;
  Parse("name: \"demo\"\nmodel {\n  width: 64  heads: 2\n}\n", &parsed);
  EXPECT_TRUE(parsed.is_whole);
  EXPECT_THAT(parsed.findings, IsEmpty());
  EXPECT_EQ(parsed.run.model().width(), 64);
  EXPECT_EQ(parsed.locations.Find("name").line, 1);
  EXPECT_EQ(parsed.locations.Find("model.heads").line, 3);
  EXPECT_EQ(parsed.locations.Find("model.heads").column, 14);
  EXPECT_EQ(parsed.locations.Find("model.layers").line, 2) << "not written: where its message is";
  EXPECT_EQ(parsed.locations.Find("rounds.quorum").line, 1) << "nor its message: the beginning";
}

TEST(RunTextTest, UnknownFieldsAreAllNamedWithAGuess) {
  Parsed parsed;
  Parse("nmae: \"demo\"\nmodel {\n  widht: 64\n  heads: 2\n}\nnonsense { deep: 1 }\n", &parsed);
  EXPECT_TRUE(parsed.is_whole);
  EXPECT_THAT(parsed.findings.size(), 3u);
  EXPECT_EQ(parsed.findings[0].line, 1);
  EXPECT_EQ(parsed.findings[0].message, "RunFile has no field \"nmae\"; did you mean \"name\"?");
  EXPECT_EQ(parsed.findings[1].line, 3);
  EXPECT_EQ(parsed.findings[1].message, "ModelConfig has no field \"widht\"; did you mean \"width\"?");
  EXPECT_EQ(parsed.findings[2].line, 6);
  EXPECT_EQ(parsed.findings[2].message, "RunFile has no field \"nonsense\"");
  EXPECT_EQ(parsed.run.model().heads(), 2) << "the rest is read";
}

TEST(RunTextTest, ValuesOfTheWrongKindAreAllReportedAtTheirPlace) {
  Parsed parsed;
  Parse(
      "seed: \"one\"\n"
      "model { width: wide heads: 2 }\n"
      "data { mode: SHRED }\n"
      "rounds { total_rounds: 99999999999999999999 overlap: maybe }\n"
      "inner { peak_rate: 1e-3 }\n",
      &parsed);
  EXPECT_TRUE(parsed.is_whole);
  EXPECT_THAT(parsed.Lines(),
              ElementsAre(HasSubstr("1:7 Expected integer"), HasSubstr("2:16 Expected integer"),
                          HasSubstr("3:14 Unknown enumeration value of \"SHRED\""),
                          HasSubstr("4:24 Integer out of range"),
                          HasSubstr("4:54 Invalid value for boolean field \"overlap\"")));
  EXPECT_EQ(parsed.run.model().heads(), 2);
  EXPECT_EQ(parsed.run.inner().peak_rate(), 1e-3);
  EXPECT_TRUE(parsed.locations.IsUnreadable("rounds.total_rounds"));
  EXPECT_FALSE(parsed.locations.IsUnreadable("rounds.total_tokens"));
}

TEST(RunTextTest, AFieldGivenTwiceIsReported) {
  Parsed parsed;
  Parse("seed: 1\nlog_level: \"info\"\nseed: 2\n", &parsed);
  ASSERT_EQ(parsed.findings.size(), 1u);
  EXPECT_EQ(parsed.findings[0].line, 3);
  EXPECT_THAT(parsed.findings[0].message, HasSubstr("\"seed\" is specified multiple times"));
}

TEST(RunTextTest, AMissingBraceEndsTheReading) {
  Parsed parsed;
  Parse("name: \"demo\"\nmodel {\n  width: 64\n", &parsed);
  EXPECT_FALSE(parsed.is_whole);
  ASSERT_EQ(parsed.findings.size(), 1u);
  EXPECT_EQ(parsed.findings[0].line, 4);
}

TEST(RunTextTest, NoTextMakesItCrashOrLoop) {
  const std::string good =
      "name: \"demo\" # note\nmodel { width: 64 heads: 2 }\nrounds { longest_round { seconds: 9 } }\n";
  const std::string samples = std::string("\0\xFF{}<>:\"'#;,-1e", 15);
  for (size_t i = 0; i < good.size(); ++i) {
    Parsed cut;
    Parse(good.substr(0, i), &cut);
    EXPECT_EQ(cut.is_whole || !cut.findings.empty(), true);
    for (char c : samples) {
      std::string bad = good;
      bad[i] = c;
      Parsed parsed;
      Parse(bad, &parsed);
      EXPECT_EQ(parsed.is_whole || !parsed.findings.empty(), true) << bad;
    }
  }
}

}  // namespace
}  // namespace isthmus
