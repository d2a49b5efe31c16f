// What the parts of good frames and updates take of their bytes, for benches and tests.
#ifndef ISTHMUS_COMPRESSION_STREAM_SIZES_H_
#define ISTHMUS_COMPRESSION_STREAM_SIZES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace isthmus {

// Bytes, stored; streams with their lengths.
struct FrameSizes {
  int64_t positions = 0, values = 0, levels = 0, table = 0;
  int64_t head = 0;  // envelope and spec

  int64_t total() const { return positions + values + levels + table + head; }
};

struct UpdateSizes {
  int64_t positions = 0;  // gaps and bitmaps
  int64_t names = 0;      // with the tables they are coded by
  int64_t literals = 0;   // the dictionaries
  int64_t signs = 0;
  int64_t dense = 0;
  int64_t head = 0;  // envelope and table

  int64_t total() const { return positions + names + literals + signs + dense + head; }
};

// INVALID_ARGUMENT: cut short, or with bytes left over. Nothing else is checked.
absl::StatusOr<FrameSizes> SizesOfFrame(absl::string_view frame);
absl::StatusOr<UpdateSizes> SizesOfUpdate(absl::string_view update);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_STREAM_SIZES_H_
