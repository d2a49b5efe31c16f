// Sums as bytes: few distinct magnitudes near each other, so a small dictionary per block names them.
//
// Where one site sent a position its sum is its weight times a level, and a block has few of those.
#ifndef ISTHMUS_COMPRESSION_SUM_CODE_H_
#define ISTHMUS_COMPRESSION_SUM_CODE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/bit_pack.h"
#include "compression/byte_io.h"

namespace isthmus {

// The three streams sums are written to.
struct SumStreams {
  std::string names;     // one byte a sum: its magnitude's place in the block's dictionary
  std::string literals;  // magnitudes as they first appear, as varints
  std::string signs;     // one bit a sum
};

// Appends sums. The dictionary holds the first 255 distinct magnitudes since BeginBlock in order of
// appearance; a name equal to their number says that a literal follows and joins them, 255 that one follows
// and does not.
class SumWriter {
 public:
  explicit SumWriter(SumStreams* out) : out_(out), signs_(&out->signs) {}

  void BeginBlock() {
    ++block_;
    known_ = 0;
  }
  void Sum(int64_t sum);
  // After the last sum.
  void Finish() { signs_.Finish(); }

 private:
  SumStreams* out_;
  BitWriter signs_;

  // The dictionary as a hash table with linear probing; slots of earlier blocks are free.
  struct Slot {
    uint64_t magnitude = 0;
    uint32_t block = 0;
    uint8_t name = 0;
  };
  static constexpr int kSlotBits = 10;
  std::vector<Slot> slots_ = std::vector<Slot>(1 << kSlotBits);
  uint32_t block_ = 0;
  size_t known_ = 0;
};

// Reads them back. The caller has checked that there are as many names as sums and a sign for each.
class SumReader {
 public:
  explicit SumReader(const SumStreams& in) : names_(in.names), literals_(in.literals), signs_(in.signs) {}

  void BeginBlock() { dictionary_.clear(); }
  // False when a name means nothing, a literal is missing or is not below `limit`.
  bool Sum(uint64_t limit, int64_t* sum);
  // Whether everything was read.
  bool is_spent() const { return at_ == names_.size() && literals_.left() == 0 && signs_.rest_is_zero(); }

 private:
  absl::string_view names_;
  size_t at_ = 0;
  ByteReader literals_;
  BitReader signs_;
  std::vector<uint64_t> dictionary_;
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_SUM_CODE_H_
