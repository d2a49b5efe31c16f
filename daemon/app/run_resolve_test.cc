#include "daemon/app/run_resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/app/run_defaults.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

RunFile RunOf(int64_t total_rounds, int64_t total_tokens = 0) {
  RunFile run;
  if (total_rounds > 0) run.mutable_rounds()->set_total_rounds(total_rounds);
  if (total_tokens > 0) run.mutable_rounds()->set_total_tokens(total_tokens);
  FillDefaults(&run);
  return run;
}

TEST(RunResolveTest, AutoFollowsTheNumberOfRounds) {
  const ResolvedRun few = ResolveAuto(RunOf(40), 3).value();
  EXPECT_EQ(few.codecs.contribution, "topk(k=512,block=4096)|levels(bits=1)|gaps|zstd(1)");
  EXPECT_EQ(few.outer_rate, 1.0f);
  EXPECT_EQ(few.total_schedule_steps, 1200);
  const ResolvedRun many = ResolveAuto(RunOf(400), 3).value();
  EXPECT_EQ(many.codecs.contribution, "topk(k=64,block=4096)|levels(bits=1)|gaps|zstd(1)");
  EXPECT_EQ(many.outer_rate, 2.0f);
  EXPECT_EQ(ResolveAuto(RunOf(80), 3)->outer_rate, 1.125f) << "2,400 inner steps";
  EXPECT_FALSE(many.is_dense);
  EXPECT_EQ(many.outer_momentum, 0.0f);
}

TEST(RunResolveTest, RoundsAreEstimatedFromTokensAndTheFirstView) {
  // 30 steps of 4 sequences of 128 tokens: 15,360 a round and site.
  EXPECT_EQ(EstimateRounds(RunOf(0, 15'360 * 3 * 50), 3), 50);
  EXPECT_EQ(EstimateRounds(RunOf(0, 15'360 * 3 * 50 + 1), 3), 51);
  EXPECT_EQ(EstimateRounds(RunOf(0, 1), 3), 1);
  EXPECT_EQ(EstimateRounds(RunOf(20, 15'360 * 3 * 50), 3), 20) << "whichever comes first";
  EXPECT_EQ(EstimateRounds(RunOf(80, 15'360 * 3 * 50), 3), 50);
  EXPECT_EQ(EstimateRounds(RunOf(0, INT64_MAX), 1), 600'479'950'316'067);
}

TEST(RunResolveTest, ADenseCodecAveragesPlainlyAndNesterovHasItsOwnNumbers) {
  RunFile run = RunOf(400);
  run.mutable_exchange()->set_contribution_codec("dense");
  const ResolvedRun plain = ResolveAuto(run, 3).value();
  EXPECT_TRUE(plain.is_dense);
  EXPECT_EQ(plain.codecs.contribution, "dense(bits=24)|zstd(1)");
  EXPECT_EQ(plain.outer_rate, 1.0f);
  run.mutable_outer()->set_form(OuterConfig::NESTEROV);
  FillDefaults(&run);
  const ResolvedRun nesterov = ResolveAuto(run, 3).value();
  EXPECT_TRUE(nesterov.is_nesterov);
  EXPECT_EQ(nesterov.outer_rate, 0.5f);
  EXPECT_EQ(nesterov.outer_momentum, 0.5f);
}

TEST(RunResolveTest, ARateThatIsGivenIsTaken) {
  RunFile run = RunOf(400);
  run.mutable_outer()->set_rate(1.25);
  EXPECT_EQ(ResolveAuto(run, 3)->outer_rate, 1.25f);
}

TEST(RunResolveTest, WhatCannotBeResolvedIsRefused) {
  EXPECT_THAT(std::string(ResolveAuto(RunOf(0), 3).status().message()),
              HasSubstr("neither total_rounds nor total_tokens"));
  EXPECT_THAT(std::string(ResolveAuto(RunOf(INT64_MAX), 3).status().message()), HasSubstr("too large"));
  RunFile run = RunOf(40);
  run.mutable_exchange()->set_contribution_codec("topk(k=auto)|levles(bits=1)");
  EXPECT_EQ(ResolveAuto(run, 3).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(RunResolveTest, TheModelsShapeIsTheRunFiles) {
  RunFile run = RunOf(40);
  run.mutable_model()->set_kv_heads(2);
  run.mutable_model()->set_tied_head(false);
  const ModelShape shape = ModelShapeOf(run.model());
  EXPECT_EQ(shape.vocabulary, 256);
  EXPECT_EQ(shape.width, 128);
  EXPECT_EQ(shape.layers, 4);
  EXPECT_EQ(shape.heads, 4);
  EXPECT_EQ(shape.kv_heads, 2);
  EXPECT_EQ(shape.feed_forward, 344);
  EXPECT_EQ(shape.context, 128);
  EXPECT_FALSE(shape.is_head_tied);
}

}  // namespace
}  // namespace isthmus
