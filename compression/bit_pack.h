// Small unsigned numbers packed without gaps, low bits first. Header-only, pure.
#ifndef ISTHMUS_COMPRESSION_BIT_PACK_H_
#define ISTHMUS_COMPRESSION_BIT_PACK_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace isthmus {

// Appends to a string it does not own. Finish fills the last byte with zero bits.
class BitWriter {
 public:
  explicit BitWriter(std::string* out) : out_(out) {}

  void Put(uint32_t value, int bits) {
    held_ |= static_cast<uint64_t>(value) << count_;
    for (count_ += bits; count_ >= 8; count_ -= 8) {
      out_->push_back(static_cast<char>(held_));
      held_ >>= 8;
    }
  }
  void Finish() {
    if (count_ > 0) out_->push_back(static_cast<char>(held_));
    held_ = 0;
    count_ = 0;
  }

 private:
  std::string* out_;
  uint64_t held_ = 0;
  int count_ = 0;
};

// Reads from bytes it does not own. The caller has checked that they are enough.
class BitReader {
 public:
  explicit BitReader(absl::string_view bytes) : bytes_(bytes) {}

  uint32_t Take(int bits) {
    while (count_ < bits) {
      held_ |= static_cast<uint64_t>(static_cast<uint8_t>(bytes_[at_++])) << count_;
      count_ += 8;
    }
    const uint32_t value = static_cast<uint32_t>(held_) & ((1u << bits) - 1);
    held_ >>= bits;
    count_ -= bits;
    return value;
  }
  // Calls use(value) for each of the next `count` values.
  template <typename Use>
  void TakeEach(int bits, int count, Use use) {
    uint64_t held = held_;  // not in memory, where `use` might write for all the compiler knows
    int left = count_;
    for (int i = 0; i < count; ++i) {
      for (; left < bits; left += 8)
        held |= static_cast<uint64_t>(static_cast<uint8_t>(bytes_[at_++])) << left;
      use(static_cast<uint32_t>(held) & ((1u << bits) - 1));
      held >>= bits;
      left -= bits;
    }
    held_ = held;
    count_ = left;
  }
  // Whether the bits after the last one taken, in its byte, are zero, as Finish leaves them.
  bool rest_is_zero() const { return held_ == 0; }

 private:
  absl::string_view bytes_;
  size_t at_ = 0;
  uint64_t held_ = 0;
  int count_ = 0;
};

// Bytes that `count` numbers of `bits` bits take.
constexpr int64_t PackedBytes(int64_t count, int bits) { return (count * bits + 7) / 8; }

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_BIT_PACK_H_
