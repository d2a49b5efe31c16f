#include "compression/entry_scan.h"

namespace isthmus {
namespace {

int MeasureFull(const uint8_t* gaps, size_t left, int kept, int blocks, GapExtent* extents) {
  int done = 0;
  for (size_t at = 0; done < blocks; at += extents[done++].bytes) {
    if (!MeasureGaps(gaps + at, left - at, kept, kBlockValues, &extents[done])) break;
    if (extents[done].entries < kept) break;
  }
  return done;
}

// Calls use(position, mantissa) for each entry.
template <typename Use>
void ForEachEntry(const PackedEntries& block, Use use) {
  uint32_t next = 0;
  const uint8_t* gap = block.gaps;
  size_t bit = block.first_bit;
  const uint32_t mask = (1u << block.value_bits) - 1;
  for (int i = 0; i < block.entries; ++i) {
    for (; *gap == 255; ++gap) next += 255;
    next += *gap++;
    const uint32_t codes = block.values[bit / 8] | uint32_t{block.values[bit / 8 + 1]} << 8;
    use(next++, block.mantissas[codes >> (bit % 8) & mask]);
    bit += static_cast<size_t>(block.value_bits);
  }
}

void Unpack(const PackedEntries& block, UnpackedEntries* out) {
  int i = 0;
  ForEachEntry(block, [&](uint32_t position, int32_t mantissa) {
    out->positions[i] = position;
    out->mantissas[i++] = mantissa;
  });
}

void Add(const PackedEntries* blocks, int count, const SoonWanted&, int32_t* sums) {
  for (int i = 0; i < count; ++i) {
    ForEachEntry(blocks[i], [&](uint32_t position, int32_t mantissa) { sums[position] += mantissa; });
  }
}

}  // namespace

bool MeasureGaps(const uint8_t* gaps, size_t left, int kept, int values, GapExtent* extent) {
  const uint32_t end = static_cast<uint32_t>(values);
  uint32_t next = 0;  // where the next gap counts from
  uint16_t entries = 0;
  for (size_t at = 0; at < left;) {
    const uint32_t gap = gaps[at++];
    next += gap;
    extent->bytes = static_cast<uint16_t>(at);  // a block's values bound it
    extent->entries = entries;
    if (next > end) return false;
    if (gap == 255) continue;
    if (next == end) return true;
    extent->entries = ++entries;
    if (entries == kept) return true;
    ++next;
  }
  if (left == 0) *extent = GapExtent();
  return false;
}

const EntryScan& PortableEntryScan() {
  static constexpr EntryScan kScan{MeasureFull, Unpack, Add};
  return kScan;
}

const EntryScan& EntryScanOf(SimdPath path) {
  const EntryScan* scan = nullptr;
  if (HasSimdPath(path) && path == SimdPath::kAvx2) scan = Avx2EntryScan();
  if (HasSimdPath(path) && path == SimdPath::kAvx512) scan = Avx512EntryScan();
  return scan == nullptr ? PortableEntryScan() : *scan;
}

}  // namespace isthmus
