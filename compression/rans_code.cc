#include "compression/rans_code.h"

#include <algorithm>

#include "compression/rans_rows.h"

namespace isthmus {
namespace {

constexpr size_t kStateBytes = 4 * kRansLanes;

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

RansWriterParts PartsOf(absl::Span<const RansFrequencies> tables) {
  RansWriterParts parts;
  parts.inverse.resize(tables.size() * kRansSymbols);
  parts.shares.resize(tables.size() * kRansSymbols);
  for (size_t t = 0; t < tables.size(); ++t) {
    uint64_t first = 0;
    for (size_t s = 0; s < kRansSymbols; ++s) {
      const uint64_t frequency = tables[t][s];
      if (frequency == 0) continue;
      parts.inverse[t * kRansSymbols + s] = ((uint64_t{1} << kRansInverseBits) + frequency - 1) / frequency;
      parts.shares[t * kRansSymbols + s] = first | (kRansTotal - frequency) << 16 | frequency << 32;
      first += frequency;
    }
  }
  return parts;
}

}  // namespace

std::string RansEncode(absl::Span<const RansFrequencies> tables, absl::Span<const RansSymbol> symbols) {
  std::string out;
  RansEncode(tables, symbols, BestSimdPath(), &out);
  return out;
}

void RansEncode(absl::Span<const RansFrequencies> tables, absl::Span<const RansSymbol> symbols, SimdPath path,
                std::string* out) {
  out->clear();
  if (symbols.empty()) return;
  const RansWriterParts parts = PartsOf(tables);
  // A reader takes the words in its order, so they are written from the end on.
  out->resize(kRansWordSlack + kStateBytes + 2 * symbols.size());
  char* word = &(*out)[0] + out->size();
  std::array<uint32_t, kRansLanes> states;
  states.fill(kRansLeastState);
  const size_t rows = symbols.size() / kRansLanes;
  for (size_t i = symbols.size(); i-- > rows * kRansLanes;) {
    states[i % kRansLanes] = RansPut(parts, symbols[i], states[i % kRansLanes], &word);
  }
  RansPutRowsOf(path)(parts, symbols.data(), rows, states.data(), &word);
  word -= kStateBytes;
  for (int lane = 0; lane < kRansLanes; ++lane) {
    for (int b = 0; b < 4; ++b) word[4 * lane + b] = static_cast<char>(states[lane] >> (8 * b));
  }
  out->erase(0, static_cast<size_t>(word - out->data()));
}

RansTable::RansTable(const RansFrequencies& frequencies) {
  uint16_t first = 0;
  for (size_t symbol = 0; symbol < kRansSymbols; ++symbol) {
    share_of_[symbol] = {frequencies[symbol], first};
    std::fill_n(symbol_of_.data() + first, frequencies[symbol], static_cast<uint8_t>(symbol));
    first = static_cast<uint16_t>(first + frequencies[symbol]);
  }
}

RansReader::RansReader(absl::string_view bytes) : bytes_(bytes) {
  states_.fill(kRansLeastState);
  if (bytes.empty()) return;
  ByteReader reader(bytes);
  for (uint32_t& state : states_) has_overrun_ |= !reader.U32(&state) || state < kRansLeastState;
  at_ = bytes.size() - reader.left();
}

size_t RansReader::TakeRows(const RansTable& table, size_t count, uint8_t* out) {
  std::array<uint32_t, kRansLanes> states = states_;  // not in memory, where `out` might be for all one knows
  size_t at = at_, taken = 0;
  for (; taken + kRansLanes <= count && bytes_.size() - at >= 2 * kRansLanes; taken += kRansLanes) {
#pragma GCC unroll 8
    for (int lane = 0; lane < kRansLanes; ++lane) {
      uint8_t symbol;
      const uint32_t state = Advance(table, states[lane], &symbol);
      out[taken + lane] = symbol;
      states[lane] = Refill(state, bytes_.data() + at, &at);
    }
  }
  states_ = states;
  at_ = at;
  return taken;
}

void RansReader::Take(const RansTable& table, size_t count, uint8_t* out) {
  size_t taken = 0;
  while (taken < count && lane_ != 0) out[taken++] = Next(table);
  taken += TakeRows(table, count - taken, out + taken);
  while (taken < count) out[taken++] = Next(table);
}

bool RansReader::is_spent() const {
  bool is_at_begin = true;
  for (uint32_t state : states_) is_at_begin &= state == kRansLeastState;
  return !has_overrun_ && at_ == bytes_.size() && is_at_begin;
}

}  // namespace isthmus
