// Positions as bytes: how many values lie between one kept position and the next.
//
// A gap g is g div 255 bytes of 255 and one of g mod 255, so each gap has one form. Header-only, pure.
#ifndef ISTHMUS_COMPRESSION_GAP_CODE_H_
#define ISTHMUS_COMPRESSION_GAP_CODE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace isthmus {

// Writes ascending positions of one range after another.
class GapWriter {
 public:
  explicit GapWriter(std::string* out) : out_(out) {}

  // The next position counts from the range's begin.
  void BeginRange() { next_ = 0; }
  // `position` ≥ all before it in the range, plus one.
  void Position(uint32_t position) {
    uint32_t gap = position - next_;
    for (; gap >= 255; gap -= 255) out_->push_back('\xFF');
    out_->push_back(static_cast<char>(gap));
    next_ = position + 1;
  }

 private:
  std::string* out_;
  uint32_t next_ = 0;
};

// Reads them back from bytes it does not own, which may be anything.
class GapReader {
 public:
  explicit GapReader(absl::string_view bytes) : bytes_(bytes) {}

  // Positions until the next call lie in [0, values).
  void BeginRange(uint64_t values) {
    next_ = 0;
    end_ = values;
  }
  // False when the bytes end or the position would pass the range's end; the reader is then of no more use.
  bool Position(uint32_t* position) {
    uint64_t at = next_;
    uint8_t byte;
    do {
      if (used_ == bytes_.size()) return false;
      byte = static_cast<uint8_t>(bytes_[used_++]);
      at += byte;
      if (at >= end_) return false;
    } while (byte == 255);
    *position = static_cast<uint32_t>(at);
    next_ = at + 1;
    return true;
  }
  // The same, but a gap that leads exactly to the range's end ends it early. How many positions there were;
  // −1 when the bytes end or a gap leads past the end. `out` has room for `count`, or for as many as bytes
  // are left where that is fewer.
  int PositionsOrEnd(int count, uint32_t base, uint32_t* out) {
    if (TakeSafely(count, base, out)) return count;
    for (int i = 0; i < count; ++i) {
      uint8_t byte;
      do {
        if (used_ == bytes_.size()) return -1;
        byte = static_cast<uint8_t>(bytes_[used_++]);
        next_ += byte;
        if (next_ > end_) return -1;
      } while (byte == 255);
      if (next_ == end_) return i;
      out[i] = static_cast<uint32_t>(base + next_++);
    }
    return count;
  }
  // Whether the last call failed because the bytes ended.
  bool is_spent() const { return used_ == bytes_.size(); }
  size_t left() const { return bytes_.size() - used_; }

 private:
  // Where the bytes cannot end within `count` positions, none of them is checked by itself. False, and
  // nothing taken, when they could, or when a position would pass the end.
  bool TakeSafely(int count, uint32_t base, uint32_t* out) {
    if (bytes_.size() - used_ < static_cast<uint64_t>(count) + end_ / 255 + 1) return false;
    const char* byte = bytes_.data() + used_;
    uint64_t at = next_;
    for (int i = 0; i < count; ++i) {
      uint8_t gap = static_cast<uint8_t>(*byte++);
      at += gap;
      while (gap == 255) {
        if (at >= end_) return false;
        gap = static_cast<uint8_t>(*byte++);
        at += gap;
      }
      out[i] = static_cast<uint32_t>(base + at++);
    }
    if (at > end_) return false;  // positions ascend, so the last one speaks for all
    used_ = static_cast<size_t>(byte - bytes_.data());
    next_ = at;
    return true;
  }

  absl::string_view bytes_;
  size_t used_ = 0;
  uint64_t next_ = 0, end_ = 0;
};

// Most bytes `count` positions in ranges of `values` values together can take.
constexpr int64_t GapBound(int64_t count, int64_t values) { return count + values / 255; }

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_GAP_CODE_H_
