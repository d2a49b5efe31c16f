#include "daemon/app/sim/sim_plan.h"

#include <sstream>

#include "daemon/app/sim/sim_file.h"
#include "daemon/base/logging.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

SimFile Parsed(const std::string& text) {
  InitLogging(LogForm::kText, LogLevel::kError);
  const absl::StatusOr<SimFile> file = ParseSimFile(text, "plan.sim");
  EXPECT_TRUE(file.ok()) << file.status();
  return *file;
}

constexpr char kCalm[] = R"(
    run { rounds { total_rounds: 6 inner_steps_per_round: 5 start_sites: 3 } }
    values: 400
    sites { name: "a" count: 2 steps_per_second: 2 }
    sites { name: "slow" steps_per_second: 1 })";

TEST(SimPlanTest, ACalmRunFinishesWithEverybodyInAndEqualDigests) {
  const absl::StatusOr<SimReport> r = SimulateRun(Parsed(kCalm), 0);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_TRUE(r->is_finished());
  EXPECT_EQ(r->rounds_committed(), 6);
  EXPECT_EQ(r->rounds_aborted(), 0);
  EXPECT_EQ(r->closed_by_all() + r->closed_by_grace() + r->closed_by_deadline(), 6);
  EXPECT_TRUE(r->are_final_digests_equal());
  EXPECT_EQ(r->digests_deviating(), 0);
  EXPECT_EQ(r->forfeited_steps(), 0);
  EXPECT_LT(r->held_out_loss_end(), r->held_out_loss_start());
  EXPECT_GT(r->round_seconds_median(), 1);
  EXPECT_LE(r->round_seconds_median(), r->round_seconds_p95());
  ASSERT_EQ(r->sites_size(), 3);
  for (const SimSiteReport& s : r->sites()) {
    EXPECT_EQ(s.incarnation(), 1) << s.site();
    EXPECT_EQ(s.rounds_included() + s.rounds_missed(), 6) << s.site();
    EXPECT_GT(s.bytes_up(), 0) << s.site();
  }
}

TEST(SimPlanTest, TheSameSeedGivesTheSameReportAndFaultsAreCounted) {
  SimFile file = Parsed(kCalm);
  file.mutable_faults()->set_worker_kills(120);
  file.mutable_faults()->set_coordinator_kills(120);
  file.mutable_faults()->mutable_away()->set_seconds(2);
  file.mutable_run()->mutable_rounds()->mutable_longest_round()->set_seconds(30);
  const absl::StatusOr<SimReport> first = SimulateRun(file, 3), again = SimulateRun(file, 3),
                                  other = SimulateRun(file, 4);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(first->is_finished());
  EXPECT_GT(first->worker_kills() + first->coordinator_kills(), 0);
  EXPECT_EQ(first->SerializeAsString(), again->SerializeAsString());
  EXPECT_NE(first->SerializeAsString(), other->SerializeAsString());
}

TEST(SimPlanTest, ARunThatTakesTooLongIsReportedAsUnfinished) {
  SimFile file = Parsed(kCalm);
  file.mutable_longest()->set_seconds(5);
  const absl::StatusOr<SimReport> r = SimulateRun(file, 0);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_FALSE(r->is_finished());
  EXPECT_NE(SimReportTable(*r).find("finished"), std::string::npos);
}

TEST(SimPlanTest, TheReportIsATableAndOneLineOfJson) {
  SimReport r;
  r.set_seed(7);
  r.set_closed_by_all(3);
  r.set_closed_by_grace(2);
  r.set_are_final_digests_equal(true);
  r.add_sites()->set_site("a-0");
  const std::string table = SimReportTable(r), json = SimReportJson(r);
  EXPECT_NE(table.find("closed by all / quorum and grace / deadline  3 / 2 / 0"), std::string::npos) << table;
  EXPECT_NE(table.find("a-0"), std::string::npos);
  EXPECT_NE(json.find("\"closed_by_grace\":\"2\""), std::string::npos) << json;
  EXPECT_EQ(json.find('\n'), std::string::npos);
}

TEST(SimPlanTest, AFileThatIsNotThereIsNamed) {
  std::ostringstream out;
  const absl::Status status = RunSimFile("no/such/plan.sim", 0, false, out);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("no/such/plan.sim"), std::string::npos) << status;
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace isthmus
