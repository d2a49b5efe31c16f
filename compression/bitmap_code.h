// Positions as bytes where they are many: one bit a value, set where there is a position. Header-only, pure.
#ifndef ISTHMUS_COMPRESSION_BITMAP_CODE_H_
#define ISTHMUS_COMPRESSION_BITMAP_CODE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace isthmus {

// Bytes of a bitmap of `values` values.
constexpr int64_t BitmapBytes(int64_t values) { return (values + 7) / 8; }

// Appends the bitmap of ascending positions below `values`; others are not in it.
inline void AppendBitmap(absl::Span<const uint32_t> positions, int64_t values, std::string* out) {
  const size_t first = out->size();
  out->resize(first + static_cast<size_t>(BitmapBytes(values)));
  auto* bytes = reinterpret_cast<uint8_t*>(&(*out)[first]);
  for (uint32_t position : positions) {
    if (position < values) bytes[position / 8] |= static_cast<uint8_t>(1 << (position % 8));
  }
}

// Reads it back: `bytes` are BitmapBytes(values) long. Fills `positions` and returns true when exactly so
// many bits are set, all of them below `values`.
inline bool ReadBitmap(absl::string_view bytes, int64_t values, absl::Span<uint32_t> positions) {
  uint32_t* next = positions.data();
  const uint32_t* end = next + positions.size();
  for (size_t at = 0; at < bytes.size(); at += 8) {
    uint64_t word = 0;
    for (size_t b = 0; b < 8 && at + b < bytes.size(); ++b) {
      word |= uint64_t{static_cast<uint8_t>(bytes[at + b])} << (8 * b);
    }
    if (end - next < __builtin_popcountll(word)) return false;
    for (; word != 0; word &= word - 1) {
      *next++ = static_cast<uint32_t>(8 * at) + static_cast<uint32_t>(__builtin_ctzll(word));
    }
  }
  return next == end && (positions.empty() || positions.back() < values);
}

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_BITMAP_CODE_H_
