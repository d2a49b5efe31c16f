// One reading of the speed bench, and how it is taken. Header-only.
#ifndef ISTHMUS_GPU_BENCH_SPEED_ROW_H_
#define ISTHMUS_GPU_BENCH_SPEED_ROW_H_

#include <algorithm>
#include <string>

#include "absl/time/time.h"
#include "gpu/bench_codec.h"

namespace isthmus {

// Speeds count the bytes of one fp32 array of the model's size, in units of 1e9.
struct SpeedRow {
  std::string work;
  std::string path;  // instruction set; one the processor lacks has no figures
  int threads = 1;
  std::string against;
  double gb_per_second = 0, against_gb_per_second = 0;
  double target = 0;  // least ratio wanted; 0: none, the row is for comparison

  bool is_measured() const { return against_gb_per_second > 0; }
  double ratio() const { return is_measured() ? gb_per_second / against_gb_per_second : 0; }
};

// Fills the row's speeds: both in turn, the best of each. `bytes`: of the array.
template <typename Work, typename Against>
void MeasureSpeed(const CodecBenchOptions& options, double bytes, Work work, Against against, SpeedRow* row) {
  double least[2] = {1e300, 1e300};
  for (int i = 0; i < std::max(1, options.repeats); ++i) {
    const absl::Time begin = options.now();
    against();
    const absl::Time middle = options.now();
    work();
    const absl::Time end = options.now();
    least[0] = std::min(least[0], absl::ToDoubleSeconds(middle - begin));
    least[1] = std::min(least[1], absl::ToDoubleSeconds(end - middle));
  }
  row->against_gb_per_second = bytes / std::max(least[0], 1e-9) / 1e9;
  row->gb_per_second = bytes / std::max(least[1], 1e-9) / 1e9;
}

}  // namespace isthmus

#endif  // ISTHMUS_GPU_BENCH_SPEED_ROW_H_
