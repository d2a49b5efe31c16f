// Bytes as fractions of a bit: range coding (rANS) with fixed tables of frequencies, eight coders in turn.
//
// zstd's Huffman codes give every symbol at least one bit, which is too much where one symbol is most of
// them. A coder's state is 32 bits, taken up in steps of 16; frequencies are parts of 4096 (FORMAT.md "Range
// coding").
#ifndef ISTHMUS_COMPRESSION_RANS_CODE_H_
#define ISTHMUS_COMPRESSION_RANS_CODE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/byte_io.h"
#include "compression/simd_path.h"

namespace isthmus {

inline constexpr int kRansBits = 12;
inline constexpr uint32_t kRansTotal = 1 << kRansBits;
inline constexpr uint32_t kRansLeastState = 1 << 16;  // states are kept in [2^16, 2^32)
inline constexpr int kRansLanes = 8;
inline constexpr int kRansSymbols = 256;

// How often each symbol occurs, in parts of kRansTotal; together kRansTotal, or all 0 in a table that codes
// nothing.
using RansFrequencies = std::array<uint16_t, kRansSymbols>;

// Frequencies near `counts`; a symbol that occurs has at least 1. All 0 when none occurs.
RansFrequencies FitFrequencies(const std::array<uint64_t, kRansSymbols>& counts);

// As bytes: number of symbols (varint; those after it do not occur), then the frequency of each (varint).
void WriteFrequencies(const RansFrequencies& frequencies, ByteWriter* writer);
// False when malformed: more than 256 symbols, the last one's frequency 0, or a sum other than kRansTotal.
bool ReadFrequencies(ByteReader* reader, RansFrequencies* frequencies);

// One symbol to be coded and by which table.
struct RansSymbol {
  uint8_t table;
  uint8_t symbol;
};

// The code of `symbols` in order; symbol i is the business of coder i mod 8. Empty for none. Every symbol
// must occur in its table.
std::string RansEncode(absl::Span<const RansFrequencies> tables, absl::Span<const RansSymbol> symbols);
// The same in place of what *out holds.
void RansEncode(absl::Span<const RansFrequencies> tables, absl::Span<const RansSymbol> symbols, SimdPath path,
                std::string* out);

// A table turned around for the reader: what each of the 4096 parts stands for. Small, for several are in use
// at once.
class RansTable {
 public:
  RansTable() = default;  // for a table that codes nothing: do not read with it
  // `frequencies` sum to kRansTotal.
  explicit RansTable(const RansFrequencies& frequencies);

 private:
  friend class RansReader;
  struct Share {
    uint16_t frequency = 0, first = 0;  // its first part
  };
  std::array<uint8_t, kRansTotal> symbol_of_ = {};  // by part
  std::array<Share, kRansSymbols> share_of_ = {};   // by symbol
};

// Reads a code back from bytes it does not own, which may be anything: whatever they are, the symbols are
// those of the tables, and is_spent says in the end whether the bytes were a code of so many symbols.
class RansReader {
 public:
  explicit RansReader(absl::string_view bytes);

  // The next `count` symbols. `table` codes something.
  void Take(const RansTable& table, size_t count, uint8_t* out);
  // The next one.
  uint8_t Next(const RansTable& table) {
    uint8_t symbol;
    uint32_t& state = states_[lane_];
    lane_ = (lane_ + 1) % kRansLanes;
    const uint32_t after = Advance(table, state, &symbol);
    if (bytes_.size() - at_ >= 2) {
      state = Refill(after, bytes_.data() + at_, &at_);
    } else {
      state = after;
      has_overrun_ |= after < kRansLeastState;
    }
    return symbol;
  }
  // Whether the code ended exactly here.
  bool is_spent() const;

 private:
  // Takes symbols while neither words nor lanes need be watched; how many.
  size_t TakeRows(const RansTable& table, size_t count, uint8_t* out);

  // The symbol a state stands for, and the state without it.
  static uint32_t Advance(const RansTable& table, uint32_t state, uint8_t* symbol) {
    const uint32_t part = state % kRansTotal;
    *symbol = table.symbol_of_[part];
    const RansTable::Share share = table.share_of_[*symbol];
    return share.frequency * (state >> kRansBits) + part - share.first;
  }
  // The state with a word more where it is too low, and the place moved on then. No branch: which way it
  // would go is as good as random.
  static uint32_t Refill(uint32_t state, const char* word, size_t* at) {
    const uint32_t is_low = state < kRansLeastState ? 1 : 0;
    const uint32_t next = static_cast<uint8_t>(word[0]) | static_cast<uint32_t>(static_cast<uint8_t>(word[1]))
                                                              << 8;
    *at += 2 * is_low;
    return (state << (16 * is_low)) | (next & (0 - is_low));
  }

  absl::string_view bytes_;
  size_t at_ = 0;
  std::array<uint32_t, kRansLanes> states_;
  int lane_ = 0;
  bool has_overrun_ = false;
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_RANS_CODE_H_
