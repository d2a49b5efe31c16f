#include "daemon/app/run_defaults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/duration.pb.h"

namespace isthmus {
namespace {

using ::testing::ContainsRegex;

TEST(RunDefaultsTest, AnEmptyFileGetsTheDecidedDefaults) {
  RunFile run;
  FillDefaults(&run);
  EXPECT_EQ(run.seed(), 1u);
  EXPECT_EQ(run.model().vocabulary(), 256);
  EXPECT_EQ(run.model().width(), 128);
  EXPECT_EQ(run.model().layers(), 4);
  EXPECT_EQ(run.model().kv_heads(), 4);
  EXPECT_EQ(run.model().feed_forward(), 344);
  EXPECT_EQ(run.model().context(), 128);
  EXPECT_TRUE(run.model().tied_head());
  EXPECT_EQ(run.data().mode(), DataConfig::SHARED);
  EXPECT_EQ(run.data().format(), DataConfig::BYTES);
  EXPECT_EQ(run.data().sequences_per_step(), 4);
  EXPECT_EQ(run.rounds().inner_steps_per_round(), 30);
  EXPECT_EQ(run.rounds().longest_round().seconds(), 600);
  EXPECT_TRUE(run.rounds().overlap());
  EXPECT_EQ(run.rounds().start_sites(), 1);
  EXPECT_TRUE(run.rounds().dense_last_round());
  EXPECT_EQ(run.exchange().contribution_codec(), "auto");
  EXPECT_EQ(run.exchange().error_feedback(), ExchangeConfig::CARRIED);
  EXPECT_EQ(run.exchange().carry_decay(), 1);
  EXPECT_EQ(run.exchange().averaging(), ExchangeConfig::PEERS);
  EXPECT_EQ(run.exchange().weights(), ExchangeConfig::TOKENS);
  EXPECT_EQ(run.outer().form(), OuterConfig::PLAIN);
  EXPECT_EQ(run.inner().peak_rate(), 3e-3);
  EXPECT_EQ(run.inner().warmup_fraction(), 0.05);
  EXPECT_EQ(run.inner().floor_fraction(), 0.05);
  EXPECT_EQ(run.inner().beta1(), 0.9);
  EXPECT_EQ(run.inner().beta2(), 0.99);
  EXPECT_EQ(run.inner().epsilon(), 1e-8);
  EXPECT_EQ(run.inner().weight_decay(), 0.1);
  EXPECT_EQ(run.inner().clip_norm(), 1.0);
  EXPECT_EQ(run.evaluation().every_rounds(), 1);
  EXPECT_EQ(run.membership().heartbeat().seconds(), 1);
  EXPECT_EQ(run.membership().suspect_after().seconds(), 3);
  EXPECT_EQ(run.storage().snapshots_kept(), 3);
  EXPECT_EQ(run.log_level(), "info");
}

TEST(RunDefaultsTest, ASeparateResidualDecaysAsPublishedUnlessTheFileSaysOtherwise) {
  RunFile run;
  run.mutable_exchange()->set_error_feedback(ExchangeConfig::SEPARATE);
  FillDefaults(&run);
  EXPECT_EQ(run.exchange().carry_decay(), 0.95);
  run.mutable_exchange()->set_carry_decay(1);
  FillDefaults(&run);
  EXPECT_EQ(run.exchange().carry_decay(), 1);
}

TEST(RunDefaultsTest, ASeparateResidualIsNotFlushedUnlessTheFileSaysSo) {
  RunFile run;
  run.mutable_exchange()->set_error_feedback(ExchangeConfig::SEPARATE);
  FillDefaults(&run);
  EXPECT_FALSE(run.rounds().dense_last_round());
  run.mutable_rounds()->set_dense_last_round(true);
  FillDefaults(&run);
  EXPECT_TRUE(run.rounds().dense_last_round());
}

TEST(RunDefaultsTest, WhatFollowsTheViewOrTheRunsLengthStaysAbsent) {
  RunFile run;
  FillDefaults(&run);
  EXPECT_FALSE(run.rounds().has_total_rounds());
  EXPECT_FALSE(run.rounds().has_total_tokens());
  EXPECT_FALSE(run.rounds().has_quorum());
  EXPECT_FALSE(run.rounds().has_minimum());
  EXPECT_FALSE(run.outer().has_rate());
  EXPECT_FALSE(run.outer().has_momentum());
}

TEST(RunDefaultsTest, WhatIsGivenStaysAndKvHeadsFollowHeads) {
  RunFile run;
  run.mutable_model()->set_heads(8);
  run.mutable_rounds()->set_overlap(false);
  run.mutable_inner()->set_weight_decay(0);
  run.mutable_outer()->set_form(OuterConfig::NESTEROV);
  FillDefaults(&run);
  EXPECT_EQ(run.model().kv_heads(), 8);
  EXPECT_FALSE(run.rounds().overlap());
  EXPECT_EQ(run.inner().weight_decay(), 0) << "zero is not absent";
  EXPECT_EQ(run.outer().rate(), 0.5);
  EXPECT_EQ(run.outer().momentum(), 0.5);
}

TEST(RunDefaultsTest, FillingTwiceChangesNothing) {
  RunFile once;
  FillDefaults(&once);
  RunFile twice = once;
  FillDefaults(&twice);
  EXPECT_EQ(once.SerializeAsString(), twice.SerializeAsString());
}

void ExpectRows(const google::protobuf::Descriptor& type, const std::string& prefix,
                const std::string& table) {
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *type.field(i);
    if (field.message_type() != nullptr && field.message_type() != google::protobuf::Duration::descriptor()) {
      ExpectRows(*field.message_type(), prefix + field.name() + ".", table);
    } else {
      EXPECT_THAT(table, ContainsRegex(absl::StrCat("(^|\n)", prefix, field.name(), " +[^ ]")));
    }
  }
}

TEST(RunDefaultsTest, TheTableHasEveryFieldWithItsDefault) {
  const std::string table = ShowDefaults();
  ExpectRows(*RunFile::descriptor(), "", table);
  EXPECT_THAT(table, ContainsRegex("\nmodel.width +128 "));
  EXPECT_THAT(table, ContainsRegex("\nrounds.longest_round +10m "));
  EXPECT_THAT(table, ContainsRegex("\nrounds.quorum +2/3 of the view"));
  EXPECT_THAT(table, ContainsRegex("\nouter.rate +auto "));
  EXPECT_THAT(table, ContainsRegex("\ninner.peak_rate +0.003 "));
}

}  // namespace
}  // namespace isthmus
