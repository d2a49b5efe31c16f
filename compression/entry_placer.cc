#include "compression/entry_placer.h"

namespace isthmus {

PlacedPositions PlacePositions(const uint8_t* gaps, size_t gap_bytes, int kept, int values,
                               Entry* positions) {
  const uint32_t end = static_cast<uint32_t>(values);
  PlacedPositions placed;
  uint32_t next = 0;  // where the next gap counts from
  while (placed.gap_bytes < gap_bytes) {
    const uint32_t gap = gaps[placed.gap_bytes++];
    next += gap;
    if (next > end) return placed;
    if (gap == 255) continue;
    placed.is_good = next == end;
    if (placed.is_good) return placed;
    positions[placed.entries++] = static_cast<Entry>(next++);
    placed.is_good = placed.entries == kept;
    if (placed.is_good) return placed;
  }
  return placed;
}

void AddCodes(const uint8_t* values, size_t first_bit, int value_bits, int count, Entry* positions) {
  const uint32_t mask = (1u << value_bits) - 1;
  size_t bit = first_bit;
  for (int i = 0; i < count; ++i, bit += static_cast<size_t>(value_bits)) {
    const uint32_t bits = values[bit / 8] | uint32_t{values[bit / 8 + 1]} << 8;
    positions[i] = static_cast<Entry>(positions[i] << value_bits | (bits >> (bit % 8) & mask));
  }
}

PlacedBlocks PlaceFullPortable(const EntryStreams& streams, int kept, int blocks, Entry* entries) {
  PlacedBlocks placed;
  size_t bit = streams.first_bit;
  for (; placed.blocks < blocks; ++placed.blocks) {
    const PlacedPositions block = PlacePositions(
        streams.gaps + placed.gap_bytes, streams.gap_bytes - placed.gap_bytes, kept, kBlockValues, entries);
    if (!block.is_good || block.entries < kept) break;
    AddCodes(streams.values, bit, streams.value_bits, kept, entries);
    placed.gap_bytes += block.gap_bytes;
    bit += static_cast<size_t>(kept) * static_cast<size_t>(streams.value_bits);
    entries += kept;
  }
  return placed;
}

PlaceFullFn PlaceFullOf(SimdPath path) {
  if (path == SimdPath::kPortable || !HasSimdPath(path)) return PlaceFullPortable;
  PlaceFullFn place = path == SimdPath::kAvx512 ? PlaceFullAvx512() : nullptr;
  if (place == nullptr) place = PlaceFullAvx2();
  return place == nullptr ? PlaceFullPortable : place;
}

}  // namespace isthmus
