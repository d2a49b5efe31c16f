#include "daemon/app/run_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "daemon/app/run_defaults.h"

namespace isthmus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kNeeded[] = "name: \"demo\" rounds { total_rounds: 40 ";

// What there is to say about a text, as "line error: …" or "line warning: …".
std::vector<std::string> FindingsOf(const std::string& text) {
  RunFile run;
  RunLocations locations;
  std::vector<RunFinding> findings;
  EXPECT_TRUE(ParseRunText(text, &run, &locations, &findings)) << text;
  FillDefaults(&run);
  CheckRun(run, locations, &findings);
  std::vector<std::string> lines;
  for (const RunFinding& f : findings) {
    lines.push_back(absl::StrCat(f.line, f.is_warning ? " warning: " : " error: ", f.message));
  }
  return lines;
}

// The only finding of a text that has the needed fields on its first line and `more` on its second;
// `in_rounds` goes into the rounds message.
std::string Only(const std::string& more, const std::string& in_rounds = "") {
  const std::vector<std::string> found = FindingsOf(absl::StrCat(kNeeded, in_rounds, "}\n", more, "\n"));
  EXPECT_EQ(found.size(), 1u) << more << in_rounds << ": " << ::testing::PrintToString(found);
  return found.empty() ? "" : found[0];
}

TEST(RunChecksTest, ASmallFileIsEnough) { EXPECT_THAT(FindingsOf(absl::StrCat(kNeeded, "}")), IsEmpty()); }

TEST(RunChecksTest, AnEmptyFileLacksAllThatIsNeeded) {
  EXPECT_THAT(FindingsOf(""),
              ElementsAre("1 error: name: is missing; it is the run's name in isthmus://host:port/NAME",
                          "1 error: rounds: neither total_rounds nor total_tokens is given; the run "
                          "would have no end"));
}

TEST(RunChecksTest, ManyMistakesAreReportedAtOnceEachAtItsLine) {
  EXPECT_THAT(FindingsOf("name: \"de mo\"\n"
                         "model {\n"
                         "  width: 100\n"
                         "  heads: 3\n"
                         "  layers: 0\n"
                         "}\n"
                         "rounds {\n"
                         "  quorum: 1\n"
                         "  minimum: 2\n"
                         "}\n"
                         "inner { beta1: 1.5 }\n"),
              ElementsAre(HasSubstr("1 error: name: must be letters"),
                          "5 error: model.layers: is 0, must be between 1 and 4096",
                          "4 error: model.heads: 3 heads do not divide a width of 100",
                          HasSubstr("7 error: rounds: neither total_rounds"),
                          "8 error: rounds.quorum: is 1, less than rounds.minimum, which is 2",
                          HasSubstr("9 warning: rounds.minimum: is 2, more than the 1 sites"),
                          HasSubstr("11 error: inner.beta1: is 1.5, must be between 0 and 0.99999")));
}

TEST(RunChecksTest, ImpossibleModelsAreRefused) {
  EXPECT_EQ(Only("model { width: 12 heads: 4 }"),
            "2 error: model.heads: heads of width 3 are odd; rotary positions need pairs");
  EXPECT_EQ(Only("model { kv_heads: 3 }"),
            "2 error: model.kv_heads: 3 key/value heads do not divide 4 heads");
  EXPECT_EQ(Only("model { vocabulary: 100 }"),
            "2 error: model.vocabulary: is 100, but data.format BYTES has 256 tokens");
  EXPECT_THAT(Only("model { width: -5 }"), HasSubstr("2 error: model.width: is -5, must be between 2 and"));
  EXPECT_THAT(Only("data { format: UINT16 } model { vocabulary: 70000 } inner { peak_rate: 1e-3 }"),
              HasSubstr("2 warning: model.vocabulary: is 70000, but data.format UINT16 reaches 65536 only"));
}

TEST(RunChecksTest, ImpossibleNumbersAreRefused) {
  EXPECT_THAT(Only("data { sequences_per_step: 0 }"), HasSubstr("2 error: data.sequences_per_step: is 0"));
  EXPECT_THAT(Only("exchange { carry_decay: 0 }"),
              HasSubstr("2 error: exchange.carry_decay: is 0, must be above 0 and at most 1"));
  EXPECT_THAT(Only("outer { rate: -1 }"), HasSubstr("2 error: outer.rate: is -1"));
  EXPECT_THAT(Only("inner { peak_rate: nan }"), HasSubstr("2 error: inner.peak_rate: is nan"));
  EXPECT_THAT(Only("inner { epsilon: 0 }"), HasSubstr("2 error: inner.epsilon: is 0"));
  EXPECT_THAT(Only("inner { clip_norm: inf }"), HasSubstr("2 error: inner.clip_norm: is inf"));
  EXPECT_THAT(Only("inner { weight_decay: -0.1 }"), HasSubstr("2 error: inner.weight_decay: is -0.1"));
  EXPECT_THAT(Only("evaluation { every_rounds: -1 }"), HasSubstr("2 error: evaluation.every_rounds: is -1"));
  EXPECT_THAT(Only("storage { snapshots_kept: 0 }"), HasSubstr("2 error: storage.snapshots_kept: is 0"));
  EXPECT_THAT(Only("log_level: \"loud\""), HasSubstr("2 error: log_level: no such log level"));
  EXPECT_THAT(Only("", "inner_steps_per_round: 0 "),
              HasSubstr("1 error: rounds.inner_steps_per_round: is 0"));
  EXPECT_THAT(Only("", "quorum: 0 "), HasSubstr("1 error: rounds.quorum: is 0"));
  EXPECT_THAT(Only("", "total_tokens: -3 "), HasSubstr("1 error: rounds.total_tokens: is -3"));
  EXPECT_EQ(Only("", "longest_round { nanos: 5 } "),
            "1 error: rounds.longest_round: is 5ns, must be between 1s and 168h");
}

TEST(RunChecksTest, NumbersThatNameNothingAreRefusedWithTheNamesThereAre) {
  EXPECT_THAT(
      FindingsOf(absl::StrCat(kNeeded,
                              "}\ndata { mode: 9 format: 8 }\nexchange { error_feedback: 7 averaging: 6 "
                              "weights: -1 }\nouter { form: 5 }")),
      ElementsAre("2 error: data.mode: is 9, must be one of SHARED, PER_SITE",
                  "2 error: data.format: is 8, must be one of BYTES, UINT16, UINT32",
                  "3 error: exchange.error_feedback: is 7, must be one of CARRIED, SEPARATE",
                  "3 error: exchange.averaging: is 6, must be one of PEERS, CONTRIBUTORS",
                  "3 error: exchange.weights: is -1, must be one of TOKENS_PER_STEP, TOKENS, EQUAL",
                  "4 error: outer.form: is 5, must be one of PLAIN, NESTEROV"));
  EXPECT_THAT(FindingsOf(absl::StrCat(kNeeded, "}\ndata { mode: 2 format: 1 }")), IsEmpty()) << "known ones";
}

TEST(RunChecksTest, TimesThatCannotGoTogetherAreRefused) {
  EXPECT_EQ(
      Only("membership { heartbeat { seconds: 2 } }"),
      "2 error: membership.suspect_after: is 3s, less than two heartbeats of 2s; every late one would be a "
      "suspicion");
}

TEST(RunChecksTest, ACodecSpecsMistakeIsPointedAt) {
  EXPECT_THAT(Only("exchange { contribution_codec: \"topk(k=auto)|levles(bits=1)\" }"),
              HasSubstr("codec spec \"topk(k=auto)|levles(bits=1)\", character 14"));
  EXPECT_THAT(Only("exchange { contribution_codec: \"topk(k=autox)\" }"),
              HasSubstr("\"topk(k=autox)\", character 8"));
  EXPECT_THAT(Only("exchange { contribution_codec: \"bf16\" }"),
              HasSubstr("2 error: exchange.contribution_codec: codec spec \"bf16\", character 1: bf16 is a "
                        "carry-only codec"));
  EXPECT_THAT(
      Only("exchange { update_codec: \" nf4 (group=64)\" }"),
      HasSubstr("2 error: exchange.update_codec: codec spec \" nf4 (group=64)\", character 2: nf4 is no "
                "codec of updates"));
  EXPECT_THAT(
      Only("exchange { update_codec: \"dense(bits=8)\" }"),
      HasSubstr(
          "2 error: exchange.update_codec: codec spec \"dense(bits=8)\", character 1: dense would make an "
          "update larger"));
  EXPECT_THAT(
      Only("exchange { snapshot_codec: \"bf16\" }"),
      HasSubstr("2 error: exchange.snapshot_codec: codec spec \"bf16\", character 1: bf16 loses bits"));
  EXPECT_THAT(Only("exchange { activation_codec: \"fp8(groop=64)\" }"), HasSubstr("character 5"));
  EXPECT_THAT(Only("exchange { activation_gradient_codec: \"nf5\" }"), HasSubstr("character 1"));
}

TEST(RunChecksTest, AMaskWhoseRestDecaysIsAWarning) {
  const std::string mask = "contribution_codec: \"mask(k=64)|levels(bits=2)\"";
  EXPECT_EQ(
      Only(absl::StrCat("exchange { ", mask, " error_feedback: SEPARATE }")),
      "2 warning: exchange.error_feedback: is SEPARATE with a mask: every frame has the same positions; "
      "what is learned at the others is not sent and decays by 0.95 a frame (CARRIED keeps it)");
  EXPECT_EQ(Only(absl::StrCat("exchange { ", mask, " carry_decay: 0.9 }")),
            "2 warning: exchange.carry_decay: is 0.9 with a mask: every frame has the same positions; "
            "what is learned at the others is not sent and decays by 0.9 a frame (1 keeps it)");
  for (const char* fine : {"error_feedback: SEPARATE carry_decay: 1", "error_feedback: CARRIED"}) {
    EXPECT_THAT(FindingsOf(absl::StrCat(kNeeded, "} exchange { ", mask, " ", fine, " }")), IsEmpty()) << fine;
  }
  EXPECT_THAT(FindingsOf(absl::StrCat(kNeeded, "} exchange { error_feedback: SEPARATE }")), IsEmpty());
}

TEST(RunChecksTest, FlushingASeparateResidualIsAWarning) {
  EXPECT_EQ(Only("exchange { error_feedback: SEPARATE }", "dense_last_round: true "),
            "1 warning: rounds.dense_last_round: is true with error_feedback: SEPARATE: the last round then "
            "applies at once "
            "what many rounds did not send, which can make the final weights much worse");
}

TEST(RunChecksTest, ImplausibleCombinationsAreWarnings) {
  EXPECT_THAT(Only("outer { form: NESTEROV }"),
              HasSubstr("2 warning: outer.form: NESTEROV is meant for the dense"));
  EXPECT_THAT(FindingsOf(absl::StrCat(
                  kNeeded, "} outer { form: NESTEROV } exchange { contribution_codec: \"dense\" }")),
              IsEmpty());
  EXPECT_THAT(Only("outer { momentum: 0.5 }"),
              HasSubstr("2 warning: outer.momentum: is used by the NESTEROV form"));
  EXPECT_THAT(Only("", "total_tokens: 100 "),
              HasSubstr("1 warning: rounds.total_tokens: is 100, less than one site"));
  EXPECT_THAT(Only("model { width: 1024 layers: 24 heads: 16 feed_forward: 2752 }"),
              HasSubstr("warning: inner.peak_rate: is 0.003, high for a model of "));
  EXPECT_THAT(
      FindingsOf(absl::StrCat(
          kNeeded,
          "} model { width: 1024 layers: 24 heads: 16 feed_forward: 2752 } inner { peak_rate: 4e-4 }")),
      IsEmpty());
}

TEST(RunChecksTest, AValueThatCouldNotBeReadIsNotComplainedAboutTwice) {
  EXPECT_THAT(FindingsOf("name: \"demo\"\nrounds { total_rounds: many }\n"),
              ElementsAre(HasSubstr("2 error: Expected integer")));
}

}  // namespace
}  // namespace isthmus
