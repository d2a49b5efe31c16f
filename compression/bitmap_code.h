// Positions as bytes where they are many: one bit a value, set where there is a position. Header-only, pure.
#ifndef ISTHMUS_COMPRESSION_BITMAP_CODE_H_
#define ISTHMUS_COMPRESSION_BITMAP_CODE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/sum_passes.h"

namespace isthmus {

// Bytes of a bitmap of `values` values.
constexpr int64_t BitmapBytes(int64_t values) { return (values + 7) / 8; }

// Appends the bitmap of ascending positions below `values`; others are not in it.
inline void AppendBitmap(absl::Span<const uint32_t> positions, int64_t values, std::string* out,
                         const SumPasses& passes = SumPassesOf(BestSimdPath())) {
  const size_t first = out->size(), bytes = static_cast<size_t>(BitmapBytes(values));
  out->resize(first + bytes);
  while (!positions.empty() && positions.back() >= values) positions.remove_suffix(1);
  passes.mark(positions.data(), positions.size(), reinterpret_cast<uint8_t*>(&(*out)[first]), bytes);
}

// Reads it back: `bytes` are BitmapBytes(values) long. Fills `positions` and returns true when exactly so
// many bits are set, all of them below `values`.
inline bool ReadBitmap(absl::string_view bytes, int64_t values, absl::Span<uint32_t> positions,
                       const SumPasses& passes = SumPassesOf(BestSimdPath())) {
  const auto* bits = reinterpret_cast<const uint8_t*>(bytes.data());
  if (passes.ones(bits, bytes.size()) != positions.size()) return false;
  passes.places(bits, bytes.size(), positions.size(), positions.data());
  return positions.empty() || positions.back() < values;
}

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_BITMAP_CODE_H_
