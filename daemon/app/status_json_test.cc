#include "daemon/app/status_json.h"

#include "daemon/app/sample_status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

TEST(StatusJson, EveryFieldSurvivesTheWayThereAndBack) {
  const RunStatus status = SampleFinishedStatus();
  for (bool is_pretty : {false, true}) {
    const auto json = StatusToJson(status, is_pretty);
    ASSERT_TRUE(json.ok()) << json.status();
    const auto back = StatusFromJson(*json);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->SerializeAsString(), status.SerializeAsString());
  }
}

TEST(StatusJson, NamesAreThoseOfTheProtoAndZerosAreThere) {
  const auto json = StatusToJson(SampleStatus(), false);
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_THAT(*json, HasSubstr("\"run_name\":\"kjv\""));
  EXPECT_THAT(*json, HasSubstr("\"rounds_aborted\":\"0\""));
  EXPECT_THAT(*json, HasSubstr("\"close_kind\":\"ALL_ARRIVED\""));
  EXPECT_THAT(*json, HasSubstr("\"steps_per_second\":9.5"));
  EXPECT_EQ(json->find('\n'), std::string::npos);
}

TEST(StatusJson, FieldsOfANewerCoordinatorArePassedOver) {
  const auto status = StatusFromJson(R"({"run_name": "x", "mood": "good"})");
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->run_name(), "x");
}

TEST(StatusJson, WhatIsNoStatusIsRefused) {
  EXPECT_EQ(StatusFromJson("{").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(StatusFromJson(R"({"round": "many"})").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace isthmus
