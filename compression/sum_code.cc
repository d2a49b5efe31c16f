#include "compression/sum_code.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace isthmus {
namespace {

constexpr int kSeenBits = 13, kPairBits = 10;  // at least twice as many slots as there can be entries
constexpr int kFar = 255;                      // the symbol that says that 255 more are to be added to a name
constexpr uint8_t kFarTable = 0;
constexpr int kClasses = 16;  // tables by the entropy of a block's names, in half bits
constexpr size_t kSignSlack = 8;

constexpr uint64_t ZigZag(int64_t v) {
  return static_cast<uint64_t>(v) << 1 ^ static_cast<uint64_t>(v >> 63);
}
constexpr int64_t UnZigZag(uint64_t v) { return static_cast<int64_t>(v >> 1) ^ -static_cast<int64_t>(v & 1); }

// n · log2 n in 2^-16 for n ≤ 4096, without floating point, whose last digits might differ between machines.
const std::array<uint64_t, kBlockValues + 1>& CountBits() {
  static const std::array<uint64_t, kBlockValues + 1> table = [] {
    std::array<uint64_t, kBlockValues + 1> t = {};
    for (uint64_t n = 1; n < t.size(); ++n) {
      uint64_t log = static_cast<uint64_t>(63 - __builtin_clzll(n));
      uint64_t x = (n << 31) >> log;  // n / 2^log in [1, 2), with 31 bits below the point
      for (int bit = 0; bit < 16; ++bit) {
        x = x * x >> 31;
        log = log << 1 | x >> 32;
        x >>= x >> 32;
      }
      t[n] = n * log;
    }
    return t;
  }();
  return table;
}

// j of each pair: the largest with j² ≤ number.
constexpr std::array<uint8_t, SumPairs::kMostPairs> LaterOfPair() {
  std::array<uint8_t, SumPairs::kMostPairs> later = {};
  int j = 0;
  for (int number = 0; number < SumPairs::kMostPairs; ++number) {
    if ((j + 1) * (j + 1) <= number) ++j;
    later[number] = static_cast<uint8_t>(j);
  }
  return later;
}
constexpr std::array<uint8_t, SumPairs::kMostPairs> kLaterOfPair = LaterOfPair();

// Frequent entries by their count; of the rarer ones those within a factor of two are as good as equal, and
// ascending magnitudes are the shorter to write.
uint32_t CountKey(uint32_t count) {
  return count >= 64 ? count : static_cast<uint32_t>(31 - __builtin_clz(count));
}

}  // namespace

SumEntry SumPairs::Pair(int number) const {
  const int j = kLaterOfPair[number];
  const int i = (number - j * j) / 2;
  const bool is_sum = (number - j * j) % 2 == 0;
  const SumEntry &a = literal_[i], &b = literal_[j];
  return {is_sum ? a.magnitude + b.magnitude : std::abs(a.magnitude - b.magnitude), a.weight + b.weight};
}

SumWriter::SumWriter(SumStreams<std::string>* out, SimdPath path)
    : out_(out),
      path_(path),
      passes_(SumPassesOf(path)),
      signs_(&out->signs),
      seen_(kSeenBits),
      pairs_(kPairBits),
      tally_(kSmall),
      rank_of_(kSmall),
      counts_(1 + kClasses) {}

void SumWriter::Clear() {
  symbol_count_ = 0;
  for (auto& counts : counts_) counts.fill(0);
}

template <bool kHasWeights>
void SumWriter::CountEntries(absl::Span<const int64_t> sums, int zeros, absl::Span<const int32_t> weights) {
  places_.resize(sums.size());
  seen_.Clear();
  const auto at = [this](uint32_t place) -> const SumEntry& { return counted_[place].entry; };
  for (size_t i = 0; i < sums.size(); ++i) {
    SumEntry entry{std::abs(sums[i]) >> zeros, 0};
    if constexpr (kHasWeights) entry.weight = weights[i];
    const size_t known = counted_.size();
    const auto place = static_cast<size_t>(seen_.FindOrAdd(entry, static_cast<int>(known), at));
    if (place == known) counted_.push_back({entry, 0, static_cast<uint16_t>(place)});
    ++counted_[place].count;
    places_[i] = static_cast<uint16_t>(place);
  }
}

bool SumWriter::CountFew(int count) {
  constexpr int kUntilNextTry = 15;
  if (many_left_ > 0) {
    --many_left_;
    return false;
  }
  const int entries = passes_.count_few(split_.magnitudes, count, &few_);
  if (entries == 0) many_left_ = kUntilNextTry;
  for (int e = 0; e < entries; ++e) {
    counted_.push_back(
        {{few_.magnitudes[e], 0}, static_cast<uint32_t>(few_.counts[e]), static_cast<uint16_t>(e)});
  }
  return entries > 0;
}

template <int kCount>
void SumWriter::CountSmall(int count) {
  static_assert(kCount == 1 || kCount * kVerySmall <= kSmall, "tallies fit");
  uint16_t listed[kCount][kBlockValues / kCount + kCount];
  int listed_count[kCount] = {};
  const auto tally = [&](int i, int which) {
    const uint16_t magnitude = split_.magnitudes[i];
    listed[which][listed_count[which]] = magnitude;
    listed_count[which] += tally_[which * kVerySmall + magnitude]++ == 0;
  };
  int i = 0;
  for (; i + kCount <= count; i += kCount) {
#pragma GCC unroll 4
    for (int which = 0; which < kCount; ++which) tally(i + which, which);
  }
  for (; i < count; ++i) tally(i, 0);
  for (int which = 0; which < kCount; ++which) {
    for (int e = 0; e < listed_count[which]; ++e) {
      is_seen_[listed[which][e] / 64] |= uint64_t{1} << (listed[which][e] % 64);
    }
  }
  // Ascending.
  for (uint64_t word = 0; 64 * word <= split_.any; ++word) {
    for (uint64_t seen = is_seen_[word]; seen != 0; seen &= seen - 1) {
      const auto magnitude = static_cast<int64_t>(64 * word) + __builtin_ctzll(seen);
      uint32_t occurs = 0;
      for (int which = 0; which < kCount; ++which) {
        occurs += tally_[which * kVerySmall + magnitude];
        tally_[which * kVerySmall + magnitude] = 0;
      }
      counted_.push_back({{magnitude, 0}, occurs, 0});
    }
    is_seen_[word] = 0;
  }
}

void SumWriter::WriteSigns() {
  int left = split_.sign_count;
  for (int word = 0; left > 0; ++word, left -= 64) {
    const uint64_t signs = split_.signs[word];
    signs_.Put(static_cast<uint32_t>(signs), std::min(left, 32));
    if (left > 32) signs_.Put(static_cast<uint32_t>(signs >> 32), std::min(left - 32, 32));
  }
}

void SumWriter::SortEntries() {
  std::sort(counted_.begin(), counted_.end(), [](const Counted& a, const Counted& b) {
    const uint32_t key_a = CountKey(a.count), key_b = CountKey(b.count);
    if (key_a != key_b) return key_a > key_b;
    return a.entry.magnitude != b.entry.magnitude ? a.entry.magnitude < b.entry.magnitude
                                                  : a.entry.weight < b.entry.weight;
  });
}

// The same order, of entries that ascend and have no weights.
void SumWriter::SortSmall() {
  constexpr uint32_t kKeys = 6;  // of counts below 64; the others, few, are one bucket
  std::array<uint32_t, kKeys + 1> ends = {};
  for (const Counted& c : counted_) ++ends[std::min(CountKey(c.count), kKeys)];
  uint32_t end = 0;
  for (size_t key = ends.size(); key-- > 0;) {
    end += ends[key];
    ends[key] = end - ends[key];  // where those of the key begin
  }
  sorted_.resize(counted_.size());
  for (const Counted& c : counted_) sorted_[ends[std::min(CountKey(c.count), kKeys)]++] = c;
  std::sort(sorted_.begin(), sorted_.begin() + ends[kKeys], [](const Counted& a, const Counted& b) {
    return a.count != b.count ? a.count > b.count : a.entry.magnitude < b.entry.magnitude;
  });
  counted_.swap(sorted_);
}

void SumWriter::AddLiteral(const SumEntry& entry, bool has_weights) {
  ByteWriter(&out_->literals).Varint(ZigZag(entry.magnitude - last_literal_));
  last_literal_ = entry.magnitude;
  if (has_weights) ByteWriter(&out_->weights).Varint(static_cast<uint64_t>(entry.weight));
  const int before = spelled_.size();
  spelled_.Add(entry);
  const auto at = [this](uint32_t number) -> const SumEntry& { return pair_[number]; };
  for (int number = before; number < spelled_.size(); ++number) {
    pair_[number] = spelled_.Pair(number);
    pairs_.FindOrAdd(pair_[number], number, at);
  }
}

void SumWriter::WriteEntries(bool has_weights) {
  ByteWriter(&out_->sizes).Varint(counted_.size());
  spelled_.Clear();
  pairs_.Clear();
  last_literal_ = 0;
  const auto at = [this](uint32_t number) -> const SumEntry& { return pair_[number]; };
  for (const Counted& counted : counted_) {
    const int pair = pairs_.Place(counted.entry, at);
    out_->entries.push_back(static_cast<char>(pair + 1));
    if (pair < 0) AddLiteral(counted.entry, has_weights);
  }
}

uint8_t SumWriter::TableOfEntropy(size_t count) const {
  const auto& count_bits = CountBits();
  uint64_t bits = count_bits[count];
  for (const Counted& counted : counted_) bits -= count_bits[counted.count];
  const uint64_t half_bits = 2 * (bits >> 16) / count;
  return static_cast<uint8_t>(1 + std::min<uint64_t>(half_bits, kClasses - 1));
}

RansSymbol* SumWriter::RoomForSymbols(size_t count) {
  // No name takes more symbols than this.
  constexpr size_t kMostSymbols = kBlockValues / kFar + 1;
  const size_t most = symbol_count_ + kMostSymbols * count;
  if (symbols_.size() < most) symbols_.resize(std::max(most, 2 * symbols_.size()));
  return symbols_.data() + symbol_count_;
}

// `rank_at`: of the block's sum of that number.
template <typename RankAt>
void SumWriter::WriteNamesBy(uint8_t table, size_t count, RankAt rank_at) {
  RansSymbol* next = RoomForSymbols(count);
  if (counted_.size() <= kFar) {
    for (size_t i = 0; i < count; ++i) next[i] = {table, static_cast<uint8_t>(rank_at(i))};
    for (size_t rank = 0; rank < counted_.size(); ++rank) counts_[table][rank] += counted_[rank].count;
    symbol_count_ += count;
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    int name = rank_at(i);
    uint8_t by = table;
    for (; name >= kFar; name -= kFar, by = kFarTable) {
      *next++ = {by, kFar};
      ++counts_[by][kFar];
    }
    *next++ = {by, static_cast<uint8_t>(name)};
    ++counts_[by][name];
  }
  symbol_count_ = static_cast<size_t>(next - symbols_.data());
}

void SumWriter::WriteFewNames(uint8_t table, size_t count) {
  static_assert(sizeof(RansSymbol) == 2 && offsetof(RansSymbol, symbol) == 1, "symbols are pairs of bytes");
  uint8_t ranks[FewEntries::kMost] = {};
  for (size_t rank = 0; rank < counted_.size(); ++rank) {
    ranks[counted_[rank].place] = static_cast<uint8_t>(rank);
    counts_[table][rank] += counted_[rank].count;
  }
  passes_.name_few(few_.places, static_cast<int>(count), table, ranks, &RoomForSymbols(count)->table);
  symbol_count_ += count;
}

void SumWriter::WriteNames(Entries entries, size_t count) {
  if (counted_.size() == 1) return;
  const uint8_t table = TableOfEntropy(count);
  out_->tables.push_back(static_cast<char>(table));
  if (entries == Entries::kFew) return WriteFewNames(table, count);
  if (entries == Entries::kSmall) {
    for (size_t rank = 0; rank < counted_.size(); ++rank) {
      rank_of_[counted_[rank].entry.magnitude] = static_cast<uint16_t>(rank);
    }
    const uint16_t *rank_of = rank_of_.data(), *magnitudes = split_.magnitudes;
    WriteNamesBy(table, count, [=](size_t i) { return rank_of[magnitudes[i]]; });
    return;
  }
  ranks_.resize(counted_.size());
  for (size_t rank = 0; rank < counted_.size(); ++rank) {
    ranks_[counted_[rank].place] = static_cast<uint16_t>(rank);
  }
  WriteNamesBy(table, count, [this](size_t i) { return ranks_[places_[i]]; });
}

SumWriter::Entries SumWriter::Count(absl::Span<const int64_t> sums, int zeros,
                                    absl::Span<const int32_t> weights) {
  counted_.clear();
  if (!weights.empty() || split_.any >= kSmall) {
    weights.empty() ? CountEntries<false>(sums, zeros, weights) : CountEntries<true>(sums, zeros, weights);
    SortEntries();
    return Entries::kAny;
  }
  const int count = static_cast<int>(sums.size());
  if (CountFew(count)) {
    SortEntries();
    return Entries::kFew;
  }
  split_.any < kVerySmall ? CountSmall<kTallies>(count) : CountSmall<1>(count);
  SortSmall();
  return Entries::kSmall;
}

void SumWriter::Block(absl::Span<const int64_t> sums, int zeros, absl::Span<const int32_t> weights) {
  passes_.split(sums.data(), static_cast<int>(sums.size()), zeros, &split_);
  WriteSigns();
  const Entries entries = Count(sums, zeros, weights);
  WriteEntries(!weights.empty());
  WriteNames(entries, sums.size());
}

void SumWriter::Finish() {
  signs_.Finish();
  // Tables nothing is coded by are left out, except that of what is far, whose number is fixed.
  std::vector<RansFrequencies> tables;  // all of them
  std::array<uint8_t, 1 + kClasses> numbers = {};
  uint8_t used = 0;
  ByteWriter writer(&out_->frequencies);
  for (size_t t = 0; t < counts_.size() && symbol_count_ > 0; ++t) {
    tables.push_back(FitFrequencies(counts_[t]));
    const bool is_used = std::any_of(counts_[t].begin(), counts_[t].end(), [](uint64_t n) { return n > 0; });
    if (!is_used && t != kFarTable) continue;
    numbers[t] = used++;
    WriteFrequencies(tables.back(), &writer);
  }
  for (char& table : out_->tables) table = static_cast<char>(numbers[static_cast<uint8_t>(table)]);
  RansEncode(tables, absl::MakeConstSpan(symbols_.data(), symbol_count_), path_, &out_->names);
}

SumReader::SumReader(const SumStreams<absl::string_view>& in, uint64_t most_sums, SimdPath path)
    : passes_(SumPassesOf(path)),
      tables_(in.tables),
      sizes_(in.sizes),
      entries_(in.entries),
      literals_(in.literals),
      weights_(in.weights),
      names_(in.names),
      signs_(in.signs),
      sign_bytes_(in.signs.size()) {
  signs_.resize(most_sums / 8 + 1 + kSignSlack);
  named_.magnitudes = magnitudes_.data();
  named_.signs = reinterpret_cast<const uint8_t*>(signs_.data());
  has_tables_ = ReadTables(in.frequencies);
}

bool SumReader::ReadTables(absl::string_view frequencies) {
  ByteReader reader(frequencies);
  while (reader.left() > 0) {
    RansFrequencies table;
    if (ranges_.size() > kClasses || !ReadFrequencies(&reader, &table)) return false;
    const bool is_used = std::any_of(table.begin(), table.end(), [](uint16_t f) { return f > 0; });
    ranges_.push_back(is_used ? RansTable(table) : RansTable());
    is_table_used_.push_back(is_used);
  }
  return true;
}

bool SumReader::ReadLiteral(const Limits& limits, SumEntry* entry) {
  uint64_t coded, weight = 0;
  if (!literals_.Varint(&coded)) return false;
  // |difference| < 2^63 and the last one is below 2^52, so only the first test can be at a loss.
  const int64_t difference = UnZigZag(coded);
  if (difference >= limits.magnitude_limit || difference < -last_literal_) return false;
  entry->magnitude = last_literal_ + difference;
  last_literal_ = entry->magnitude;
  if (limits.most_weight == 0) return true;
  if (!weights_.Varint(&weight) || weight < 1 || weight > static_cast<uint64_t>(limits.most_weight))
    return false;
  entry->weight = static_cast<int32_t>(weight);
  return true;
}

bool SumReader::ReadDictionary(int count, int zeros, const Limits& limits) {
  uint64_t size;
  if (!sizes_.Varint(&size) || size < 1 || size > static_cast<uint64_t>(count)) return false;
  known_ = static_cast<int>(size);
  named_.known = known_;
  named_.has_zero = false;
  last_literal_ = 0;
  spelled_.Clear();
  for (int e = 0; e < known_; ++e) {
    uint8_t code;
    if (!entries_.U8(&code)) return false;
    SumEntry entry;
    if (code > 0) {
      if (code > spelled_.size()) return false;
      entry = spelled_.Pair(code - 1);
    } else {
      if (!ReadLiteral(limits, &entry)) return false;
      spelled_.Add(entry);
    }
    if (entry.magnitude >= limits.magnitude_limit || entry.weight > limits.most_weight) return false;
    named_.has_zero |= entry.magnitude == 0;
    magnitudes_[e] = entry.magnitude << zeros;
    largest_ = std::max(largest_, magnitudes_[e]);
    entry_weights_[e] = entry.weight;
  }
  return true;
}

bool SumReader::ReadFarNames(const RansTable& table, int count) {
  for (int i = 0; i < count; ++i) {
    int symbol = names_.Next(table), name = 0;
    for (; symbol == kFar && name < known_; name += kFar) {
      if (!is_table_used_[kFarTable]) return false;
      symbol = names_.Next(ranges_[kFarTable]);
    }
    name += symbol;
    if (name >= known_) return false;
    far_names_[i] = static_cast<uint16_t>(name);
  }
  return true;
}

// `table`: null where all names are 0.
bool SumReader::NearBlock(const RansTable* table, int count, int64_t* sums, int32_t* weights) {
  if (table == nullptr) {
    std::fill(symbols_.data(), symbols_.data() + count, uint8_t{0});
  } else {
    names_.Take(*table, static_cast<size_t>(count), symbols_.data());
  }
  if (!passes_.look_up(symbols_.data(), count, &named_, sums)) return false;
  for (int i = 0; weights != nullptr && i < count; ++i) weights[i] = entry_weights_[symbols_[i]];
  return true;
}

bool SumReader::FarBlock(const RansTable& table, int count, int64_t* sums, int32_t* weights) {
  if (!ReadFarNames(table, count)) return false;
  size_t at = named_.sign_at;
  for (int i = 0; i < count; ++i) {
    const int64_t magnitude = magnitudes_[far_names_[i]];
    const int64_t negative = -static_cast<int64_t>(named_.signs[at / 8] >> (at % 8) & 1);
    sums[i] = (magnitude ^ negative) - negative;
    at += magnitude != 0;
    if (weights != nullptr) weights[i] = entry_weights_[far_names_[i]];
  }
  named_.sign_at = at;
  return true;
}

bool SumReader::Block(int count, int zeros, const Limits& limits, int64_t* sums, int32_t* weights) {
  if (!has_tables_ || !ReadDictionary(count, zeros, limits)) return false;
  if (known_ == 1) return NearBlock(nullptr, count, sums, weights);
  uint8_t table;
  if (!tables_.U8(&table) || table == kFarTable || table >= ranges_.size() || !is_table_used_[table])
    return false;
  return known_ <= kFar ? NearBlock(&ranges_[table], count, sums, weights)
                        : FarBlock(ranges_[table], count, sums, weights);
}

bool SumReader::is_spent() const {
  // Signs end in the byte of the last one, the bits after it 0; so do those behind that were put there.
  const bool are_signs_spent =
      sign_bytes_ == (named_.sign_at + 7) / 8 &&
      (named_.sign_at % 8 == 0 ||
       static_cast<uint8_t>(signs_[named_.sign_at / 8]) >> (named_.sign_at % 8) == 0);
  return has_tables_ && are_signs_spent && tables_.left() == 0 && sizes_.left() == 0 &&
         entries_.left() == 0 && literals_.left() == 0 && weights_.left() == 0 && names_.is_spent();
}

}  // namespace isthmus
