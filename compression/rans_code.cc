#include "compression/rans_code.h"

#include <algorithm>

namespace isthmus {
namespace {

constexpr uint32_t kLeastState = 1 << 16;  // states are kept in [2^16, 2^32)
constexpr size_t kStateBytes = 4 * kRansLanes;

// Both: inline, as they are most of the work.
inline uint32_t Word(const char* at) {
  return static_cast<uint8_t>(at[0]) | static_cast<uint32_t>(static_cast<uint8_t>(at[1])) << 8;
}

inline uint32_t Advance(uint32_t part, uint32_t state) {
  return ((part >> 20) + 1) * (state >> kRansBits) + (part >> 8 & (kRansTotal - 1));
}

}  // namespace

RansFrequencies FitFrequencies(const std::array<uint64_t, kRansSymbols>& counts) {
  RansFrequencies out = {};
  uint64_t total = 0;
  for (uint64_t count : counts) total += count;
  if (total == 0) return out;
  int left = kRansTotal;
  for (int s = 0; s < kRansSymbols; ++s) {
    if (counts[s] == 0) continue;
    const uint64_t share = (counts[s] * kRansTotal + total / 2) / total;
    out[s] = static_cast<uint16_t>(std::max<uint64_t>(1, share));
    left -= out[s];
  }
  // What rounding left over, or took too much, is the business of the most frequent one.
  while (left != 0) {
    uint16_t* most = std::max_element(out.data(), out.data() + kRansSymbols);
    const int step = left > 0 ? left : -std::min(-left, std::max(1, *most / 2));
    *most = static_cast<uint16_t>(*most + step);
    left -= step;
  }
  return out;
}

void WriteFrequencies(const RansFrequencies& frequencies, ByteWriter* writer) {
  int symbols = kRansSymbols;
  while (symbols > 0 && frequencies[symbols - 1] == 0) --symbols;
  writer->Varint(static_cast<uint64_t>(symbols));
  for (int s = 0; s < symbols; ++s) writer->Varint(frequencies[s]);
}

bool ReadFrequencies(ByteReader* reader, RansFrequencies* frequencies) {
  *frequencies = {};
  uint64_t symbols, frequency = 1, sum = 0;
  if (!reader->Varint(&symbols) || symbols > kRansSymbols) return false;
  for (uint64_t s = 0; s < symbols; ++s) {
    if (!reader->Varint(&frequency) || frequency > kRansTotal) return false;
    (*frequencies)[s] = static_cast<uint16_t>(frequency);
    sum += frequency;
  }
  return symbols == 0 || (sum == kRansTotal && frequency > 0);
}

namespace {

// One symbol in one table, as the writer needs it: state → state + bias + ⌊state / frequency⌋ · others.
struct WriterPart {
  uint64_t least_flush = 0;  // a state from here on gives off 16 bits first
  uint64_t inverse = 0;      // ⌊state / frequency⌋ is the upper half of state · inverse
  uint32_t bias = 0;
  uint32_t others = 0;  // parts that are not the symbol's
};

WriterPart PartOf(uint32_t first, uint32_t frequency) {
  WriterPart part;
  part.least_flush = uint64_t{frequency} << (32 - kRansBits);
  part.others = kRansTotal - frequency;
  // 2^64 / 1 does not fit: what comes out one too low is made up for by the bias.
  part.inverse = frequency == 1 ? ~uint64_t{0} : ~uint64_t{0} / frequency + 1;
  part.bias = frequency == 1 ? first + kRansTotal - 1 : first;
  return part;
}

std::vector<WriterPart> PartsOf(absl::Span<const RansFrequencies> tables) {
  std::vector<WriterPart> parts(tables.size() * kRansSymbols);
  for (size_t t = 0; t < tables.size(); ++t) {
    uint32_t first = 0;
    for (int s = 0; s < kRansSymbols; ++s) {
      if (tables[t][s] == 0) continue;
      parts[t * kRansSymbols + s] = PartOf(first, tables[t][s]);
      first += tables[t][s];
    }
  }
  return parts;
}

}  // namespace

std::string RansEncode(absl::Span<const RansFrequencies> tables, absl::Span<const RansSymbol> symbols) {
  std::string out;
  RansEncode(tables, symbols, &out);
  return out;
}

void RansEncode(absl::Span<const RansFrequencies> tables, absl::Span<const RansSymbol> symbols,
                std::string* out) {
  out->clear();
  if (symbols.empty()) return;
  const std::vector<WriterPart> parts = PartsOf(tables);
  // A reader takes the words in its order, so they are written from the end on.
  out->resize(kStateBytes + 2 * symbols.size());
  char* word = &(*out)[0] + out->size();
  std::array<uint32_t, kRansLanes> states;
  states.fill(kLeastState);
  for (size_t i = symbols.size(); i-- > 0;) {
    uint32_t state = states[i % kRansLanes];
    const WriterPart& part = parts[size_t{symbols[i].table} * kRansSymbols + symbols[i].symbol];
    if (state >= part.least_flush) {
      *--word = static_cast<char>(state >> 8);
      *--word = static_cast<char>(state);
      state >>= 16;
    }
    const auto quotient = static_cast<uint32_t>(static_cast<unsigned __int128>(state) * part.inverse >> 64);
    states[i % kRansLanes] = state + part.bias + quotient * part.others;
  }
  word -= kStateBytes;
  for (int lane = 0; lane < kRansLanes; ++lane) {
    for (int b = 0; b < 4; ++b) word[4 * lane + b] = static_cast<char>(states[lane] >> (8 * b));
  }
  out->erase(0, static_cast<size_t>(word - out->data()));
}

RansTable::RansTable(const RansFrequencies& frequencies) : parts_(kRansTotal) {
  uint32_t* part = parts_.data();
  for (uint32_t s = 0; s < kRansSymbols; ++s) {
    for (uint32_t i = 0; i < frequencies[s]; ++i) *part++ = (frequencies[s] - 1u) << 20 | i << 8 | s;
  }
}

RansReader::RansReader(absl::string_view bytes) : bytes_(bytes) {
  states_.fill(kLeastState);
  if (bytes.empty()) return;
  ByteReader reader(bytes);
  for (uint32_t& state : states_) has_overrun_ |= !reader.U32(&state) || state < kLeastState;
  at_ = bytes.size() - reader.left();
}

size_t RansReader::TakeRows(const uint32_t* parts, size_t count, uint8_t* out) {
  std::array<uint32_t, kRansLanes> states = states_;  // not in memory, where `out` might be for all one knows
  const char* word = bytes_.data() + at_;
  const char* end = bytes_.data() + bytes_.size();
  size_t taken = 0;
  for (; taken + kRansLanes <= count && end - word >= 2 * kRansLanes; taken += kRansLanes) {
    for (int lane = 0; lane < kRansLanes; ++lane) {
      const uint32_t part = parts[states[lane] % kRansTotal];
      out[taken + lane] = static_cast<uint8_t>(part);
      const uint32_t state = Advance(part, states[lane]);
      const bool is_low = state < kLeastState;
      states[lane] = is_low ? state << 16 | Word(word) : state;
      word += is_low ? 2 : 0;
    }
  }
  states_ = states;
  at_ = static_cast<size_t>(word - bytes_.data());
  return taken;
}

void RansReader::TakeOne(const uint32_t* parts, uint8_t* out) {
  uint32_t& state = states_[lane_];
  lane_ = (lane_ + 1) % kRansLanes;
  const uint32_t part = parts[state % kRansTotal];
  *out = static_cast<uint8_t>(part);
  state = Advance(part, state);
  if (state >= kLeastState) return;
  if (bytes_.size() - at_ < 2) {
    has_overrun_ = true;
    return;
  }
  state = state << 16 | Word(bytes_.data() + at_);
  at_ += 2;
}

void RansReader::Take(const RansTable& table, size_t count, uint8_t* out) {
  const uint32_t* parts = table.parts_.data();
  size_t taken = 0;
  while (taken < count && lane_ != 0) TakeOne(parts, &out[taken++]);
  taken += TakeRows(parts, count - taken, out + taken);
  while (taken < count) TakeOne(parts, &out[taken++]);
}

bool RansReader::is_spent() const {
  bool is_at_begin = true;
  for (uint32_t state : states_) is_at_begin &= state == kLeastState;
  return !has_overrun_ && at_ == bytes_.size() && is_at_begin;
}

}  // namespace isthmus
