#include "compression/sum_passes.h"

#include <cstdlib>
#include <cstring>

namespace isthmus {
namespace {

uint64_t Any(const int64_t* sums, size_t count) {
  uint64_t any = 0;
  for (size_t i = 0; i < count; ++i) any |= static_cast<uint64_t>(sums[i]);
  return any;
}

void Split(const int64_t* sums, int count, int zeros, SplitSums* out) {
  out->any = 0;
  out->sign_count = 0;
  for (int word = 0; 64 * word < count; ++word) out->signs[word] = 0;
  for (int i = 0; i < count; ++i) {
    const uint64_t magnitude = static_cast<uint64_t>(std::abs(sums[i])) >> zeros;
    out->any |= magnitude;
    out->magnitudes[i] = static_cast<uint16_t>(magnitude);
    out->signs[out->sign_count / 64] |= uint64_t{sums[i] < 0} << (out->sign_count % 64);
    out->sign_count += sums[i] != 0;
  }
}

// Tables do as well here.
int CountFew(const uint16_t*, int, FewEntries*) { return 0; }

void NameFew(const uint8_t* places, int count, uint8_t table, const uint8_t* ranks, uint8_t* symbols) {
  for (int i = 0; i < count; ++i) {
    symbols[2 * i] = table;
    symbols[2 * i + 1] = ranks[places[i]];
  }
}

bool LookUp(const uint8_t* names, int count, NamedSums* named, int64_t* sums) {
  size_t at = named->sign_at;
  bool is_known = true;
  for (int i = 0; i < count; ++i) {
    is_known &= names[i] < named->known;
    const int64_t magnitude = named->magnitudes[names[i]];
    const int64_t negative = -static_cast<int64_t>(named->signs[at / 8] >> (at % 8) & 1);
    sums[i] = (magnitude ^ negative) - negative;
    at += magnitude != 0;
  }
  named->sign_at = at;
  return is_known;
}

void Mark(const uint32_t* places, size_t count, uint8_t* bytes, size_t) {
  // The present byte is not read back: that would wait for its writing.
  uint32_t at = 0, bits = 0;
  for (size_t i = 0; i < count; ++i) {
    bits = places[i] / 8 == at ? bits : 0;
    at = places[i] / 8;
    bits |= 1u << (places[i] % 8);
    bytes[at] = static_cast<uint8_t>(bits);
  }
}

size_t Ones(const uint8_t* bytes, size_t count) {
  size_t ones = 0, at = 0;
  for (; count - at >= 8; at += 8) {
    uint64_t word;
    std::memcpy(&word, bytes + at, sizeof word);
    ones += static_cast<size_t>(__builtin_popcountll(word));
  }
  for (; at < count; ++at) ones += static_cast<size_t>(__builtin_popcount(bytes[at]));
  return ones;
}

void Places(const uint8_t* bytes, size_t count, size_t, uint32_t* out) {
  for (size_t at = 0; at < count; at += 8) {
    uint64_t word = 0;
    for (size_t b = 0; b < 8 && at + b < count; ++b) word |= uint64_t{bytes[at + b]} << (8 * b);
    for (; word != 0; word &= word - 1) {
      *out++ = static_cast<uint32_t>(8 * at) + static_cast<uint32_t>(__builtin_ctzll(word));
    }
  }
}

}  // namespace

const SumPasses& PortableSumPasses() {
  static constexpr SumPasses kPasses{Any, Split, CountFew, NameFew, LookUp, Mark, Ones, Places};
  return kPasses;
}

const SumPasses& SumPassesOf(SimdPath path) {
  const bool fast = path == SimdPath::kAvx512 && HasSimdPath(path) && Avx512SumPasses() != nullptr;
  return fast ? *Avx512SumPasses() : PortableSumPasses();
}

}  // namespace isthmus
