// Sums as bytes: a block has few distinct magnitudes, so a dictionary for each block lists them and
// range-coded names say which one a position has.
//
// Where one site sent a position its magnitude is the site's weight times its level, and where two did it is
// the sum or the difference of two such: the dictionary lists those as pairs of magnitudes already in it.
// With weights (averaging over contributors) an entry is a magnitude and a weight, so that weights cost next
// to nothing. The bytes are described in FORMAT.md, "Sums".
#ifndef ISTHMUS_COMPRESSION_SUM_CODE_H_
#define ISTHMUS_COMPRESSION_SUM_CODE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/bit_pack.h"
#include "compression/byte_io.h"
#include "compression/layout.h"
#include "compression/rans_code.h"
#include "compression/sum_passes.h"

namespace isthmus {

// The streams sums are written to, or read from; String is std::string or absl::string_view.
template <typename String>
struct SumStreams {
  String tables;    // for each block which table of frequencies its names are coded by
  String sizes;     // for each block how many entries its dictionary has
  String entries;   // for each entry whether it is spelled out or which pair of those it is
  String literals;  // entries spelled out: magnitudes
  String weights;   // and their weights
  String frequencies;
  String names;  // range code
  String signs;  // one bit for each sum that is not zero
};

// An entry of a block's dictionary.
struct SumEntry {
  int64_t magnitude = 0;
  int32_t weight = 0;  // 0 where there are none
};

// The first entries of a dictionary that were spelled out, and their pairs by number: sums and differences of
// entries i ≤ j have the numbers j² + 2i and, for i < j, j² + 2i + 1.
class SumPairs {
 public:
  static constexpr int kMostLiterals = 16;
  static constexpr int kMostPairs = 255;

  void Clear() { literals_ = 0; }
  void Add(const SumEntry& literal) {
    if (literals_ < kMostLiterals) literal_[literals_++] = literal;
  }
  int literals() const { return literals_; }
  // How many pairs there are.
  int size() const { return literals_ == kMostLiterals ? kMostPairs : literals_ * literals_; }
  // Pair `number` < size().
  SumEntry Pair(int number) const;

 private:
  std::array<SumEntry, kMostLiterals> literal_;
  int literals_ = 0;
};

// Finds entries among up to half as many as it has slots: open addressing, the entries themselves elsewhere.
class SumEntryIndex {
 public:
  explicit SumEntryIndex(int bits) : slots_(size_t{1} << bits) {}

  // Forgets all of them.
  void Clear() { ++filling_; }
  // Place of `entry`, where at(place) is the entry of a place; adds it as `next` when it is not there.
  template <typename At>
  int FindOrAdd(const SumEntry& entry, int next, At at) {
    Slot* slot = Find(entry, at);
    if (slot->filling != filling_) *slot = {filling_, static_cast<uint32_t>(next)};
    return static_cast<int>(slot->place);
  }
  // Its place, or -1.
  template <typename At>
  int Place(const SumEntry& entry, At at) {
    const Slot* slot = Find(entry, at);
    return slot->filling == filling_ ? static_cast<int>(slot->place) : -1;
  }

 private:
  struct Slot {
    uint32_t filling = 0;  // slots of earlier fillings are free
    uint32_t place = 0;
  };

  template <typename At>
  Slot* Find(const SumEntry& entry, At at) {
    const uint64_t key = static_cast<uint64_t>(entry.magnitude) ^ static_cast<uint64_t>(entry.weight) << 52;
    const size_t mask = slots_.size() - 1;
    for (size_t i = key * 0x9E3779B97F4A7C15ull >> 32 & mask;; i = (i + 1) & mask) {
      Slot& slot = slots_[i];
      if (slot.filling != filling_) return &slot;
      const SumEntry& found = at(slot.place);
      if (found.magnitude == entry.magnitude && found.weight == entry.weight) return &slot;
    }
  }

  std::vector<Slot> slots_;
  uint32_t filling_ = 1;
};

// Appends sums, block after block. Finish writes names, signs and frequencies.
class SumWriter {
 public:
  explicit SumWriter(SumStreams<std::string>* out, SimdPath path = BestSimdPath());

  // For another update; memory is kept. The streams are the caller's to empty.
  void Clear();
  // One block's sums, 1 … 4096 of them, over 2^zeros, which divides them. `weights`: none or as many.
  void Block(absl::Span<const int64_t> sums, int zeros, absl::Span<const int32_t> weights);
  // After the last block.
  void Finish();

 private:
  struct Counted {
    SumEntry entry;
    uint32_t count = 0;
    uint16_t place = 0;  // in order of appearance
  };
  // Magnitudes below this have places in tables, as a block's mostly are. Where they are below the second,
  // one that is often next to itself is counted in several tallies: each addition would wait for the one
  // before.
  static constexpr int kSmall = 1 << 16, kVerySmall = 1 << 12;
  static constexpr int kTallies = 4;

  template <bool kHasWeights>
  void CountEntries(absl::Span<const int64_t> sums, int zeros, absl::Span<const int32_t> weights);
  // False when there are more than few, or it was not tried.
  bool CountFew(int count);
  template <int kCount>
  void CountSmall(int count);
  void WriteSigns();
  void SortEntries();
  void SortSmall();
  void WriteEntries(bool has_weights);
  void AddLiteral(const SumEntry& entry, bool has_weights);
  enum class Entries { kFew, kSmall, kAny };  // how a block's are counted
  Entries Count(absl::Span<const int64_t> sums, int zeros, absl::Span<const int32_t> weights);
  void WriteNames(Entries entries, size_t count);
  void WriteFewNames(uint8_t table, size_t count);
  RansSymbol* RoomForSymbols(size_t count);
  template <typename RankAt>
  void WriteNamesBy(uint8_t table, size_t count, RankAt rank_at);
  uint8_t TableOfEntropy(size_t count) const;

  SumStreams<std::string>* out_;
  const SimdPath path_;
  const SumPasses& passes_;
  BitWriter signs_;
  SumEntryIndex seen_, pairs_;
  SplitSums split_;
  std::vector<uint16_t> places_;  // of the block's sums, in order of appearance of their entries
  std::vector<Counted> counted_;  // the block's entries; most frequent first once sorted
  std::vector<uint16_t> ranks_;   // place to rank
  // By small magnitude: how often it occurs and whether it does, 0 between blocks; and its rank.
  std::vector<uint16_t> tally_;
  std::array<uint64_t, kSmall / 64> is_seen_ = {};
  std::vector<uint16_t> rank_of_;
  std::vector<Counted> sorted_;
  FewEntries few_;
  int many_left_ = 0;  // blocks not to try few entries with: those of a tensor are alike
  SumPairs spelled_;
  std::array<SumEntry, SumPairs::kMostPairs> pair_;  // of spelled_
  int64_t last_literal_ = 0;
  // All blocks'; by class of entropy. Memory beyond the last one is kept as it is.
  std::vector<RansSymbol> symbols_;
  size_t symbol_count_ = 0;
  std::vector<std::array<uint64_t, kRansSymbols>> counts_;  // of symbols_, for each table
};

// Reads them back from streams that may hold anything.
class SumReader {
 public:
  SumReader(const SumReader&) = delete;
  SumReader& operator=(const SumReader&) = delete;
  // `most_sums`: how many all blocks together have. `in` must outlive the reader.
  SumReader(const SumStreams<absl::string_view>& in, uint64_t most_sums, SimdPath path = BestSimdPath());

  // What the entries of a block may be: magnitude < magnitude_limit; weights 1 … most_weight, or 0 for none.
  struct Limits {
    int64_t magnitude_limit = 0;
    int32_t most_weight = 0;
  };
  // The next block's `count` (1 … 4096) sums times 2^zeros, and their weights unless null. False when
  // malformed; the reader is then of no more use.
  bool Block(int count, int zeros, const Limits& limits, int64_t* sums, int32_t* weights);
  // No magnitude of a dictionary since the last call was above this, times 2^zeros.
  int64_t TakeLargest() {
    const int64_t largest = largest_;
    largest_ = 0;
    return largest;
  }
  // Whether everything was read.
  bool is_spent() const;

 private:
  bool ReadTables(absl::string_view frequencies);
  bool ReadDictionary(int count, int zeros, const Limits& limits);
  bool ReadLiteral(const Limits& limits, SumEntry* entry);
  bool ReadFarNames(const RansTable& table, int count);
  bool NearBlock(const RansTable* table, int count, int64_t* sums, int32_t* weights);
  bool FarBlock(const RansTable& table, int count, int64_t* sums, int32_t* weights);

  const SumPasses& passes_;
  ByteReader tables_, sizes_, entries_, literals_, weights_;
  RansReader names_;
  std::string signs_;  // with zeros behind, so that no read of it can pass its end
  size_t sign_bytes_;
  int64_t largest_ = 0;
  bool has_tables_;
  std::vector<RansTable> ranges_;
  std::vector<bool> is_table_used_;

  // The block's: entries with magnitudes times 2^zeros, and the places named.
  int known_ = 0;
  int64_t last_literal_ = 0;
  SumPairs spelled_;
  NamedSums named_;
  std::array<int64_t, kBlockValues> magnitudes_ = {};
  std::array<int32_t, kBlockValues> entry_weights_;
  std::array<uint16_t, kBlockValues> far_names_;
  std::array<uint8_t, kBlockValues> symbols_ = {};
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_SUM_CODE_H_
