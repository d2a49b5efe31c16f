// The runs that `isthmus bench round` makes: their run files, their text, their limits. Pure.
#ifndef ISTHMUS_DAEMON_APP_ROUND_BENCH_SETUP_H_
#define ISTHMUS_DAEMON_APP_ROUND_BENCH_SETUP_H_

#include <cstdint>
#include <string>

#include "protos/run.pb.h"

namespace isthmus {

// Small enough for rounds of one or two seconds on two cores.
struct BenchShape {
  int64_t width = 128, layers = 4, heads = 4, feed_forward = 344, context = 128;
  int64_t sequences_per_step = 4;
  int64_t inner_steps = 10;
  int64_t sites = 3;
  int64_t seed = 1;
};

// A run whose sites exchange `k` of 4096 values for `rounds` rounds; everything else by default, but without
// evaluations between the first and the last one, which would take one site's time.
RunFile MakeBenchRun(const BenchShape& shape, const std::string& name, int64_t k, int64_t rounds);

// Words drawn from a seeded vocabulary, the first ones most often: at least `bytes` of text to train on when
// none is given.
std::string MakeSeededText(int64_t bytes, uint64_t seed);

// The limit at which a frame takes a quarter of a round to send; at least 1.
int64_t QuarterRoundUplink(double frame_bytes, double round_seconds);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_ROUND_BENCH_SETUP_H_
