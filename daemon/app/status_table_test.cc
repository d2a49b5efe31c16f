#include "daemon/app/status_table.h"

#include "daemon/app/sample_status.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

TEST(StatusTable, ShowsTheRunItsSitesAndItsLastCommits) {
  EXPECT_EQ(
      StatusTable(SampleStatus(), 5),
      R"text(run        kjv  (id kjv-01, 1.00M parameters, topk(k=512,block=4096)|levels(bits=1)|gaps|zstd(1))
feedback   SEPARATE x 0.95
phase      ROUND_OPEN, round 3 of 50, open for 2.50 s
waiting    site-slow (1 of 2 in): quorum is 2 of 3, 41.2 s are left
rounds     2 committed, 0 aborted; 1 contributions refused; coordinator restarted 1 time
learning   held-out loss 3.1200 after round 1; 71.7k tokens; 12 of 560 sequences trained twice; 20 steps forfeited
agreement  anchor 0123456789abcdef0011223344556677; 5 digests compared, 0 deviating
bytes      450 kB in, 1.20 MB out on the coordinator's sockets; 4.20 MB on disk, at most 30.0 MB
traffic    control 9.00 kB up, 21.0 kB down; contribution 420 kB up; update 740 kB down

site       life  state   doing                     steps/s  tokens/s  steps    loss      out       in  computing  waiting  round trip  rounds  missed  forfeited  frame    last reason for missing a round
site-a        1  active  training                     9.50     4.86k     75  2.7100   180 kB  4.30 MB     7.90 s   0.25 s      1.2 ms       2       0    0 steps  in       -
site-b        2  dead    silent for 6.50 s            9.10     4.66k     50  2.7500  90.0 kB  4.20 MB     5.40 s   0.00 s      0.9 ms       1       1   20 steps  -        died in round 2
site-slow     1  active  waiting for a data lease        -         -     24       -      0 B      0 B     0.00 s   0.00 s           -       2       0    0 steps  sending  -

round   in  training  held-out  tokens    took  digest                            why it closed
    1  3/3    3.6100    3.1200   35.8k  3.66 s  ffeeddccbbaa99887766554433221100  all 3 expected arrived
    2  2/2    2.7400         -   20.5k  3.65 s  0123456789abcdef0011223344556677  2 of 2 expected arrived (site-b died)
)text");
}

TEST(StatusTable, ShowsAnEmptyRunWithoutGaps) {
  RunStatus status;
  status.set_run_name("kjv");
  status.set_run_id("kjv-01");
  status.set_phase("WAITING_FOR_SITES");
  status.set_waiting_for("3 more sites");
  EXPECT_EQ(StatusTable(status, 5), R"text(run        kjv  (id kjv-01, 0 parameters, )
phase      WAITING_FOR_SITES, round 0
waiting    3 more sites
rounds     0 committed, 0 aborted; 0 contributions refused; coordinator restarted 0 times
learning   held-out loss -; 0 tokens; 0 of 0 sequences trained twice; 0 steps forfeited
agreement  anchor -; 0 digests compared, 0 deviating
bytes      0 B in, 0 B out on the coordinator's sockets; 0 B on disk
traffic    nothing yet

no sites yet

no round committed yet
)text");
}

TEST(StatusTable, SaysOfSitesFromBeforeARestartThatTheyWereNotHeardSince) {
  RunStatus status = SampleStatus();
  status.mutable_sites(1)->set_silence_seconds(0);
  status.mutable_sites(2)->set_state("away");
  const std::string text = StatusTable(status, 1);
  EXPECT_NE(text.find("site-b        2  dead    not heard since the coordinator's start "), std::string::npos)
      << text;
  EXPECT_NE(text.find("site-slow     1  away    not heard since the coordinator's start "),
            std::string::npos);
}

TEST(StatusTable, ShowsOnlyTheNewestCommitsAskedFor) {
  const std::string text = StatusTable(SampleStatus(), 1);
  EXPECT_EQ(text.find("all 3 expected arrived"), std::string::npos);
  EXPECT_NE(text.find("2 of 2 expected arrived (site-b died)"), std::string::npos);
}

}  // namespace
}  // namespace isthmus
