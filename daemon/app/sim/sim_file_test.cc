#include "daemon/app/sim/sim_file.h"

#include "gtest/gtest.h"

namespace isthmus {
namespace {

std::string MistakeOf(const std::string& text) {
  const absl::StatusOr<SimFile> file = ParseSimFile(text, "plan.sim");
  return file.ok() ? "" : std::string(file.status().message());
}

TEST(SimFileTest, GroupsBecomeSitesThatAreNamedAndAlike) {
  const absl::StatusOr<SimFile> file = ParseSimFile(R"(
      run { rounds { total_rounds: 7 inner_steps_per_round: 12 } }
      values: 300
      sites { name: "fast" count: 2 steps_per_second: 4 latency { nanos: 5000000 } up_bytes_per_second: 1e6 }
      sites { count: 1 max_tokens_per_second: 9 })",
                                                    "plan.sim");
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::StatusOr<SimRunOptions> o = SimRunOptionsOf(*file, 0);
  ASSERT_TRUE(o.ok()) << o.status();
  ASSERT_EQ(o->sites.size(), 3u);
  EXPECT_EQ(o->sites[1].name, "fast-1");
  EXPECT_EQ(o->sites[1].steps_per_second, 4);
  EXPECT_EQ(o->sites[1].link.latency, absl::Milliseconds(5));
  EXPECT_EQ(o->sites[1].link.up_bytes_per_second, 1e6);
  EXPECT_EQ(o->sites[2].name, "site-0");
  EXPECT_EQ(o->sites[2].steps_per_second, 1);
  EXPECT_EQ(o->sites[2].max_tokens_per_second, 9);
  EXPECT_EQ(o->planned_rounds, 7);
  EXPECT_EQ(o->run.rounds().inner_steps_per_round(), 12);
  EXPECT_EQ(o->values, 300);
  EXPECT_EQ(o->seed, 1u);
}

TEST(SimFileTest, TheSeedGivenComesBeforeTheFilesAndSpeedsFlowFromIt) {
  const absl::StatusOr<SimFile> file =
      ParseSimFile("seed: 5 sites { count: 3 steps_per_second: 2 speed_spread: 4 }", "plan.sim");
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::StatusOr<SimRunOptions> five = SimRunOptionsOf(*file, 0), again = SimRunOptionsOf(*file, 5),
                                      six = SimRunOptionsOf(*file, 6);
  EXPECT_EQ(five->seed, 5u);
  EXPECT_EQ(six->seed, 6u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_GE(five->sites[i].steps_per_second, 0.5);
    EXPECT_LE(five->sites[i].steps_per_second, 8);
    EXPECT_EQ(five->sites[i].steps_per_second, again->sites[i].steps_per_second);
    EXPECT_NE(five->sites[i].steps_per_second, six->sites[i].steps_per_second);
  }
}

TEST(SimFileTest, MistakesOfFormAreToldWithTheirPlace) {
  EXPECT_EQ(MistakeOf("values: 10\nsites { cuont: 3 }").substr(0, 13), "plan.sim:2:14");
}

TEST(SimFileTest, ImpossibleNumbersAreToldByField) {
  EXPECT_EQ(MistakeOf("values: 10"), "plan.sim: sites: at least one group is needed");
  EXPECT_EQ(MistakeOf("values: 1 sites {}"), "plan.sim: values: 1 is not within 2 and 20000000");
  EXPECT_EQ(MistakeOf("sites { name: 'a' steps_per_second: -2 }"), "plan.sim: sites a: a rate of -2");
  EXPECT_EQ(MistakeOf("sites { name: 'a' count: 2000 }"), "plan.sim: sites a: more than 1024 sites");
  EXPECT_EQ(MistakeOf("sites { } faults { clogs: 1e9 }"),
            "plan.sim: faults: a rate of 1e+09 an hour is not within 0 and 3600");
}

TEST(SimFileTest, ACodecSpecThatIsNoneIsRefused) {
  const absl::StatusOr<SimFile> file =
      ParseSimFile("run { exchange { contribution_codec: 'topk(k=3' } } sites { }", "plan.sim");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(SimRunOptionsOf(*file, 0).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace isthmus
