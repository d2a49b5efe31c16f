#include "daemon/app/traffic_table.h"

#include <google/protobuf/text_format.h>

#include "gtest/gtest.h"

namespace isthmus {
namespace {

RunStatus Sample() {
  RunStatus status;
  google::protobuf::TextFormat::ParseFromString(
      R"pb(
        parameters: 1000000
        bytes_in: 520000
        bytes_out: 4900000
        commits { included: 2 expected: 2 }
        commits { included: 3 expected: 4 }
        traffic { kind: CONTROL bytes_up: 12000 bytes_down: 34000 }
        traffic {
          kind: CONTRIBUTION
          bytes_up: 500000
          codec: "topk(k=64,block=4096)|levels(bits=1)|gaps|zstd(1)"
        }
        traffic { kind: UPDATE bytes_down: 600000 codec: "exact" }
        traffic { kind: SNAPSHOT bytes_down: 4200000 codec: "fp32" }
        traffic { kind: ACTIVATION codec: "bf16|zstd(1)" }
        traffic { kind: ACTIVATION_GRADIENT codec: "bf16|zstd(1)" })pb",
      &status);
  return status;
}

TEST(TrafficTableTest, TheLineHasTheClassesThatMoved) {
  EXPECT_EQ(TrafficLine(Sample()),
            "control 12.0 kB up, 34.0 kB down; contribution 500 kB up; update 600 kB down; "
            "snapshot 4.20 MB down");
  EXPECT_EQ(TrafficLine(RunStatus()), "nothing yet");
}

TEST(TrafficTableTest, TheTableHasEveryClassAndWhatTheTransportAdded) {
  EXPECT_EQ(
      TrafficTable(Sample()),
      R"text(traffic                 codec                                                   up     down  B/param up  B/param down
control                 -                                                  12.0 kB  34.0 kB      0.0024        0.0057
contribution            topk(k=64,block=4096)|levels(bits=1)|gaps|zstd(1)   500 kB      0 B      0.1000             -
update                  exact                                                  0 B   600 kB           -        0.1000
snapshot                fp32                                                   0 B  4.20 MB           -        0.7000
activation              bf16|zstd(1)                                           0 B      0 B           -             -
activation gradient     bf16|zstd(1)                                           0 B      0 B           -             -
added by the transport  -                                                  8.00 kB  66.0 kB      0.0016        0.0110
)text");
}

TEST(TrafficTableTest, WhatTheTransportAddedIsNotSaidWhereTheSocketsWereNotCounted) {
  RunStatus status = Sample();
  status.set_bytes_in(1000);
  EXPECT_EQ(TrafficTable(status).find("added by the transport"), std::string::npos);
}

TEST(TrafficTableTest, WhatTheHubCarriesIsSaidWhenItCarriesAnything) {
  RunStatus status = Sample();
  EXPECT_EQ(ResidualLine(status), "");
  status.set_is_update_recompressed(true);
  status.mutable_traffic(2)->set_codec("topk(k=128,block=4096)|levels(bits=2)|gaps|zstd(1)");
  status.set_residual_norm(0.0123456);
  EXPECT_EQ(ResidualLine(status),
            "norm 0.01235, updates encoded anew by topk(k=128,block=4096)|levels(bits=2)|gaps|zstd(1)");
  status.set_residual_forfeited_square_sum(0.25);
  EXPECT_EQ(
      ResidualLine(status),
      "norm 0.01235, updates encoded anew by topk(k=128,block=4096)|levels(bits=2)|gaps|zstd(1); sum of "
      "squares 0.25 forfeited at restarts");
  EXPECT_NE(TrafficTable(status).find("the hub carries: norm 0.01235, "), std::string::npos);
}

}  // namespace
}  // namespace isthmus
