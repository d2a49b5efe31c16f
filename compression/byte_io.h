// Little-endian integers in and out of byte strings. Header-only; used by the frame and update formats.
#ifndef ISTHMUS_COMPRESSION_BYTE_IO_H_
#define ISTHMUS_COMPRESSION_BYTE_IO_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace isthmus {

// Appends to a string it does not own; the string must outlive it.
class ByteWriter {
 public:
  explicit ByteWriter(std::string* out) : out_(out) {}

  void U8(uint8_t v) { out_->push_back(static_cast<char>(v)); }
  void U16(uint16_t v) { Fixed(v, 2); }
  void U32(uint32_t v) { Fixed(v, 4); }
  void U64(uint64_t v) { Fixed(v, 8); }
  // Seven bits a byte, low ones first, high bit set on all but the last.
  void Varint(uint64_t v) {
    for (; v >= 0x80; v >>= 7) U8(static_cast<uint8_t>(v) | 0x80);
    U8(static_cast<uint8_t>(v));
  }
  void Bytes(absl::string_view bytes) { out_->append(bytes.data(), bytes.size()); }

 private:
  void Fixed(uint64_t v, int bytes) {
    for (int i = 0; i < bytes; ++i) U8(static_cast<uint8_t>(v >> (8 * i)));
  }

  std::string* out_;
};

// Reads from bytes it does not own. Every method returns false, and reads nothing, when too few are left.
class ByteReader {
 public:
  explicit ByteReader(absl::string_view bytes) : bytes_(bytes) {}

  bool U8(uint8_t* v) {
    if (bytes_.empty()) return false;
    *v = static_cast<uint8_t>(bytes_[0]);
    bytes_.remove_prefix(1);
    return true;
  }
  bool U16(uint16_t* v) { return Fixed(v, 2); }
  bool U32(uint32_t* v) { return Fixed(v, 4); }
  bool U64(uint64_t* v) { return Fixed(v, 8); }
  // Also false for more than 64 bits and for forms longer than needed, so each number has one form.
  bool Varint(uint64_t* v) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes_.size() && i < 10; ++i) {
      const uint8_t byte = static_cast<uint8_t>(bytes_[i]);
      if (i == 9 && byte > 1) return false;
      value |= static_cast<uint64_t>(byte & 0x7F) << (7 * i);
      if (byte & 0x80) continue;
      if (i > 0 && byte == 0) return false;
      bytes_.remove_prefix(i + 1);
      *v = value;
      return true;
    }
    return false;
  }
  bool Bytes(uint64_t count, absl::string_view* v) {
    if (count > bytes_.size()) return false;
    *v = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return true;
  }

  size_t left() const { return bytes_.size(); }

 private:
  template <typename T>
  bool Fixed(T* v, size_t bytes) {
    if (bytes_.size() < bytes) return false;
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) {
      value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes_[i])) << (8 * i);
    }
    *v = static_cast<T>(value);
    bytes_.remove_prefix(bytes);
    return true;
  }

  absl::string_view bytes_;
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_BYTE_IO_H_
