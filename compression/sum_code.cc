#include "compression/sum_code.h"

#include <algorithm>
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

SumWriter::SumWriter(SumStreams<std::string>* out)
    : out_(out), signs_(&out->signs), seen_(kSeenBits), pairs_(kPairBits), counts_(1 + kClasses) {}

void SumWriter::Clear() {
  symbols_.clear();
  for (auto& counts : counts_) counts.fill(0);
}

template <bool kHasWeights>
void SumWriter::CountEntries(absl::Span<const int64_t> sums, int zeros, absl::Span<const int32_t> weights) {
  counted_.clear();
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

void SumWriter::WriteSigns(absl::Span<const int64_t> sums) {
  uint32_t held = 0;
  int count = 0;
  for (int64_t sum : sums) {
    held |= static_cast<uint32_t>(sum < 0) << count;
    count += sum != 0;
    if (count < 24) continue;
    signs_.Put(held, count);
    held = 0;
    count = 0;
  }
  signs_.Put(held, count);
}

void SumWriter::SortEntries() {
  std::sort(counted_.begin(), counted_.end(), [](const Counted& a, const Counted& b) {
    const uint32_t key_a = CountKey(a.count), key_b = CountKey(b.count);
    if (key_a != key_b) return key_a > key_b;
    return a.entry.magnitude != b.entry.magnitude ? a.entry.magnitude < b.entry.magnitude
                                                  : a.entry.weight < b.entry.weight;
  });
  ranks_.resize(counted_.size());
  for (size_t rank = 0; rank < counted_.size(); ++rank) {
    ranks_[counted_[rank].place] = static_cast<uint16_t>(rank);
  }
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

uint8_t SumWriter::TableOfEntropy() const {
  const auto& count_bits = CountBits();
  uint64_t bits = count_bits[places_.size()];
  for (const Counted& counted : counted_) bits -= count_bits[counted.count];
  const uint64_t half_bits = 2 * (bits >> 16) / places_.size();
  return static_cast<uint8_t>(1 + std::min<uint64_t>(half_bits, kClasses - 1));
}

void SumWriter::WriteNames() {
  if (counted_.size() == 1) return;
  const uint8_t table = TableOfEntropy();
  out_->tables.push_back(static_cast<char>(table));
  if (counted_.size() <= kFar) {
    for (size_t rank = 0; rank < counted_.size(); ++rank) counts_[table][rank] += counted_[rank].count;
    std::array<RansSymbol, kBlockValues> block;
    for (size_t i = 0; i < places_.size(); ++i) {
      block[i] = {table, static_cast<uint8_t>(ranks_[places_[i]])};
    }
    symbols_.insert(symbols_.end(), block.begin(), block.begin() + static_cast<ptrdiff_t>(places_.size()));
    return;
  }
  for (uint16_t place : places_) {
    int name = ranks_[place];
    uint8_t by = table;
    for (; name >= kFar; name -= kFar, by = kFarTable) {
      symbols_.push_back({by, kFar});
      ++counts_[by][kFar];
    }
    symbols_.push_back({by, static_cast<uint8_t>(name)});
    ++counts_[by][name];
  }
}

void SumWriter::Block(absl::Span<const int64_t> sums, int zeros, absl::Span<const int32_t> weights) {
  if (weights.empty()) {
    CountEntries<false>(sums, zeros, weights);
  } else {
    CountEntries<true>(sums, zeros, weights);
  }
  WriteSigns(sums);
  SortEntries();
  WriteEntries(!weights.empty());
  WriteNames();
}

void SumWriter::Finish() {
  signs_.Finish();
  // Tables nothing is coded by are left out, except that of what is far, whose number is fixed.
  std::vector<RansFrequencies> tables;
  std::array<uint8_t, 1 + kClasses> numbers = {};
  for (size_t t = 0; t < counts_.size() && !symbols_.empty(); ++t) {
    const bool is_used = std::any_of(counts_[t].begin(), counts_[t].end(), [](uint64_t n) { return n > 0; });
    if (!is_used && t != kFarTable) continue;
    numbers[t] = static_cast<uint8_t>(tables.size());
    tables.push_back(FitFrequencies(counts_[t]));
  }
  for (RansSymbol& symbol : symbols_) symbol.table = numbers[symbol.table];
  for (char& table : out_->tables) table = static_cast<char>(numbers[static_cast<uint8_t>(table)]);
  ByteWriter writer(&out_->frequencies);
  for (const RansFrequencies& table : tables) WriteFrequencies(table, &writer);
  RansEncode(tables, symbols_, &out_->names);
}

SumReader::SumReader(const SumStreams<absl::string_view>& in, uint64_t most_sums)
    : tables_(in.tables),
      sizes_(in.sizes),
      entries_(in.entries),
      literals_(in.literals),
      weights_(in.weights),
      names_(in.names),
      signs_(in.signs),
      sign_bytes_(in.signs.size()) {
  signs_.resize(most_sums / 8 + 1 + kSignSlack);
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
  has_zero_ = false;
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
    has_zero_ |= entry.magnitude == 0;
    magnitudes_[e] = entry.magnitude << zeros;
    entry_weights_[e] = entry.weight;
  }
  return true;
}

bool SumReader::ReadNames(int count) {
  uint8_t table;
  if (!tables_.U8(&table) || table == kFarTable || table >= ranges_.size() || !is_table_used_[table])
    return false;
  bool is_known = true;
  if (known_ <= kFar) {
    names_.Take(ranges_[table], count, symbols_.data());
    for (int i = 0; i < count; ++i) {
      is_known &= symbols_[i] < known_;
      named_[i] = symbols_[i];
    }
    return is_known;
  }
  for (int i = 0; i < count; ++i) {
    uint8_t symbol;
    int name = 0;
    names_.Take(ranges_[table], 1, &symbol);
    for (; symbol == kFar && name < known_; name += kFar) {
      if (!is_table_used_[kFarTable]) return false;
      names_.Take(ranges_[kFarTable], 1, &symbol);
    }
    name += symbol;
    if (name >= known_) return false;
    named_[i] = static_cast<uint16_t>(name);
  }
  return true;
}

void SumReader::ApplySigns(int count, int64_t* sums) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(signs_.data());
  size_t at = sign_at_;
  if (has_zero_) {
    for (int i = 0; i < count; ++i) {
      const int64_t negative = -static_cast<int64_t>(bytes[at / 8] >> (at % 8) & 1);
      at += sums[i] != 0;
      sums[i] = (sums[i] ^ negative) - negative;
    }
  } else {
    for (int i = 0; i < count; ++i, ++at) {
      const int64_t negative = -static_cast<int64_t>(bytes[at / 8] >> (at % 8) & 1);
      sums[i] = (sums[i] ^ negative) - negative;
    }
  }
  sign_at_ = at;
}

bool SumReader::Block(int count, int zeros, const Limits& limits, int64_t* sums, int32_t* weights) {
  if (!has_tables_ || !ReadDictionary(count, zeros, limits)) return false;
  if (known_ == 1) {
    std::fill(sums, sums + count, magnitudes_[0]);
    if (weights != nullptr) std::fill(weights, weights + count, entry_weights_[0]);
  } else {
    if (!ReadNames(count)) return false;
    for (int i = 0; i < count; ++i) sums[i] = magnitudes_[named_[i]];
    for (int i = 0; weights != nullptr && i < count; ++i) weights[i] = entry_weights_[named_[i]];
  }
  ApplySigns(count, sums);
  return true;
}

bool SumReader::is_spent() const {
  // Signs end in the byte of the last one, the bits after it 0; so do those behind that were put there.
  const bool are_signs_spent =
      sign_bytes_ == (sign_at_ + 7) / 8 &&
      (sign_at_ % 8 == 0 || static_cast<uint8_t>(signs_[sign_at_ / 8]) >> (sign_at_ % 8) == 0);
  return has_tables_ && are_signs_spent && tables_.left() == 0 && sizes_.left() == 0 &&
         entries_.left() == 0 && literals_.left() == 0 && weights_.left() == 0 && names_.is_spent();
}

}  // namespace isthmus
