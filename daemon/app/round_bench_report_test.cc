#include "daemon/app/round_bench_report.h"

#include <nlohmann/json.hpp>

#include "gtest/gtest.h"

namespace isthmus {
namespace {

RoundBenchReport Sample() {
  RoundBenchReport report;
  report.sites = 3;
  report.parameters = 824448;
  report.inner_steps = 10;
  report.seed = 1;
  report.is_text_given = true;
  report.load_average = 0.5;
  report.quiet_close_delay_seconds = 0.001;
  report.usual_round_seconds = 1.25;
  report.worker_kills = {{"site-b", 10, 0.4, false, 0.75, "grace", 0.25, 1, 2.5},
                         {"site-a", 17, 0.8, true, 0, "all", 0.5, 2, 3},
                         {"site-c", 24, 0.1, false, 0.25, "grace", 0, 0, 2}};
  report.coordinator_kills = {{9, 0.5, 0.5, 2, 2.125, 1.5}, {14, 0.25, 0.75, 3, 3.125, 2.25}};
  report.waiting = {{true, 0, 20, 1.25, 0, 99, 1, 2.5}, {false, 40000, 20, 2, 0.25, 60, 30, 2.75}};
  report.bytes = {{64, 824448, 39, 599040, 0.0246, 0.0625, 0.95, 0.03, 0.07, 2.875, 2.75, 5.5463, 2.5}};
  return report;
}

TEST(RoundBenchReportTest, TheMedianIsTheMiddleOneOrTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(MedianOf({}), 0);
  EXPECT_EQ(MedianOf({3}), 3);
  EXPECT_EQ(MedianOf({9, 1, 5}), 5);
  EXPECT_EQ(MedianOf({8, 1, 4, 2}), 3);
}

TEST(RoundBenchReportTest, ThePublishedFormTakesFourteenBitsForEachValueKept) {
  EXPECT_EQ(PublishedBytesPerParameter(64), 0.02734375);
  EXPECT_EQ(PublishedBytesPerParameter(512), 0.21875);
}

TEST(RoundBenchReportTest, TheTableShowsEveryKillEveryRunAndTheMedians) {
  EXPECT_EQ(RoundBenchTable(Sample()),
            R"(3 sites, 824448 parameters, 10 inner steps to a round, seed 1, load average 0.50 at the start

SIGKILL of a worker: close of the round it fell in minus the last arrival (a round takes 1.250 s, closes 0.001 s after the last arrival without a kill)
  kill  site    round      at  contributed  delay s  closed by  found dead s  later rounds  their delay s
     1  site-b     10  40.0 %  no             0.750  grace             2.500             1          0.250
     2  site-a     17  80.0 %  yes            0.000  all               3.000             2          0.500
     3  site-c     24  10.0 %  no             0.250  grace             2.000             0          0.000
median                                        0.250                    2.500                        0.250
median of the 2 whose victim had not contributed yet: 0.500 s

SIGKILL of the coordinator, started again at once
  kill  round      at  start to listening s  start to commit s  kill to commit s  added s
     1      9  50.0 %                 0.500              2.000             2.125    1.500
     2     14  25.0 %                 0.750              3.000             3.125    2.250
median                                0.625              2.500             2.625    1.875

Share of their time that sites have nothing to compute
overlap  uplink B/s  sending  rounds  round s  computing s  waiting s  waiting  held-out loss
on             free        -      20    1.250         99.0        1.0    1.0 %         2.5000
off           40000   25.0 %      20    2.000         60.0       30.0   33.3 %         2.7500

Bytes per parameter and frame, update or site and round beside the published 12+2-bit form at the same k (dense last round apart)
 k  published  frame up   of it  update down  frames  socket up  socket down  last up  last down  rounds  tokens     held-out loss
64     0.0273    0.0246  90.0 %       0.0625  95.0 %     0.0300       0.0700   2.8750     2.7500      39  599040  5.5463 to 2.5000
)");
}

TEST(RoundBenchReportTest, PartsThatWereNotMeasuredAreLeftOutOfTheTable) {
  RoundBenchReport report = Sample();
  report.worker_kills.clear();
  report.waiting.clear();
  report.bytes.clear();
  EXPECT_EQ(RoundBenchTable(report),
            R"(3 sites, 824448 parameters, 10 inner steps to a round, seed 1, load average 0.50 at the start

SIGKILL of the coordinator, started again at once
  kill  round      at  start to listening s  start to commit s  kill to commit s  added s
     1      9  50.0 %                 0.500              2.000             2.125    1.500
     2     14  25.0 %                 0.750              3.000             3.125    2.250
median                                0.625              2.500             2.625    1.875
)");
}

TEST(RoundBenchReportTest, TheJsonHasTheMediansAndEveryFigure) {
  const auto json = nlohmann::json::parse(RoundBenchJson(Sample()));
  EXPECT_EQ(json["worker_kill_delay_seconds_median"], 0.25);
  EXPECT_EQ(json["worker_kill_delay_seconds_median_not_contributed"], 0.5);
  EXPECT_EQ(json["coordinator_restart_to_commit_seconds_median"], 2.5);
  EXPECT_EQ(json["coordinator_kill_to_commit_seconds_median"], 2.625);
  EXPECT_EQ(json["worker_kills"].size(), 3u);
  EXPECT_EQ(json["worker_kills"][0]["site"], "site-b");
  EXPECT_EQ(json["worker_kills"][0]["later_delay_seconds"], 0.25);
  EXPECT_EQ(json["worker_kills"][0]["found_dead_seconds"], 2.5);
  EXPECT_EQ(json["coordinator_kills"][1]["listen_seconds"], 0.75);
  EXPECT_EQ(json["coordinator_kills"][1]["added_seconds"], 2.25);
  EXPECT_EQ(json["waiting"][0]["waiting_fraction"], 0.01);
  EXPECT_EQ(json["waiting"][1]["upload_bytes_per_second"], 40000);
  EXPECT_EQ(json["bytes_per_parameter"][0]["published"], 0.02734375);
  EXPECT_EQ(json["bytes_per_parameter"][0]["frame_up"], 0.0246);
  EXPECT_EQ(json["bytes_per_parameter"][0]["held_out_loss_after"], 2.5);
}

}  // namespace
}  // namespace isthmus
