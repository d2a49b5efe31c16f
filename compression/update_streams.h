// The packed streams of an update, in the order of its bytes. Used by writer, reader and benches.
#ifndef ISTHMUS_COMPRESSION_UPDATE_STREAMS_H_
#define ISTHMUS_COMPRESSION_UPDATE_STREAMS_H_

#include <array>
#include <string>

#include "compression/sum_code.h"

namespace isthmus {

// Raw; String is std::string or absl::string_view.
template <typename String>
struct UpdateStreams {
  String table, gaps, bitmaps;
  SumStreams<String> sums;
  String sum_planes, weight_planes;

  static constexpr int kCount = 13;
  // All of them, in order.
  std::array<String*, kCount> All() {
    return {&table,        &gaps,          &bitmaps,      &sums.tables,      &sums.sizes,
            &sums.entries, &sums.literals, &sums.weights, &sums.frequencies, &sums.names,
            &sums.signs,   &sum_planes,    &weight_planes};
  }
};

inline constexpr std::array<const char*, UpdateStreams<std::string>::kCount> kUpdateStreamNames = {
    "table",          "gap",       "bitmap",   "sum table", "dictionary size", "dictionary entry", "literal",
    "literal weight", "frequency", "sum name", "sum sign",  "dense sum",       "dense weight"};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_UPDATE_STREAMS_H_
