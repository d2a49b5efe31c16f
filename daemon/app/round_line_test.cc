#include "daemon/app/round_line.h"

#include "daemon/app/sample_status.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

TEST(RoundLine, HeadingsAndLinesShareTheirColumns) {
  const RunStatus status = SampleStatus();
  EXPECT_EQ(RoundLineHeadings(),
            "round  sites  training  held-out  tokens/s  bytes out   bytes in  computing   waiting  slowest  "
            "     why it closed");
  EXPECT_EQ(RoundLine(status.commits(0)),
            "    1    3/3    3.6100    3.1200     9.80k     252 kB     510 kB     10.5 s    0.40 s  "
            "site-slow     all 3 expected arrived");
  EXPECT_EQ(RoundLine(status.commits(1)),
            "    2    2/2    2.7400         -     5.60k     168 kB     230 kB     7.10 s    0.10 s  "
            "site-slow     2 of 2 expected arrived (site-b died)");
}

TEST(RoundLine, WhatWasNotMeasuredIsADash) {
  EXPECT_EQ(RoundLine(CommitSummary()),
            "    0    0/0         -         -         -        0 B        0 B     0.00 s    0.00 s  -        "
            "     ");
}

}  // namespace
}  // namespace isthmus
