// The passes over values in groups that share a scale, for dense integers of 8 and 4 bits. One table of them
// for each vector path.
//
// Every path gives the same numbers; the portable table is the oracle, and the one for anything but whole
// blocks. Threads may share a table.
#ifndef ISTHMUS_COMPRESSION_GROUP_SCAN_H_
#define ISTHMUS_COMPRESSION_GROUP_SCAN_H_

#include <cstdint>

#include "compression/simd_path.h"

namespace isthmus {

// `values` is 4096 except in the portable table, where it is at least 1. Groups are of `group` values, a
// power of two from 16 on; the last one may be shorter. Magnitudes are the bits of |d|, which order as the
// values do.
struct GroupScan {
  // differences[i] = anchor[i] − parameters[i]; the largest magnitude of each group, 0x7F800000 or more when
  // NaN or Inf is in it.
  void (*difference)(const float* anchor, const float* parameters, int values, int group, float* differences,
                     uint32_t* largest);
  void (*largest)(const float* in, int values, int group, uint32_t* largest);

  // in · 2^−exponents[group], to the nearest integer (halves to even), cut to ±127 or ±7: one byte a value,
  // or two values a byte, the first in the low bits. But for the portable table no exponent is outside −126 …
  // 126 and nothing needs to be cut.
  void (*quantize8)(const float* in, int values, int group, const int* exponents, uint8_t* out);
  void (*quantize4)(const float* in, int values, int group, const int* exponents, uint8_t* out);

  // The integers, times 2^shifts[group]. False when one is −128, or −8, which no encoder writes.
  bool (*decode8)(const uint8_t* in, int values, int group, const uint8_t* shifts, int32_t* out);
  bool (*decode4)(const uint8_t* in, int values, int group, const uint8_t* shifts, int32_t* out);

  // The Walsh–Hadamard transform in place, not normalised: sums and differences at distance 1, 2, 4 … in this
  // order, so that floats round alike everywhere. `values` is a power of two.
  void (*hadamard)(float* inout, int values);
  void (*hadamard_integers)(int32_t* inout, int values);
};

const GroupScan& PortableGroupScan();
// That of the path where the processor has it, else the portable one.
const GroupScan& GroupScanOf(SimdPath path);

// The tables of each file; null in builds for other processors.
const GroupScan* Avx2GroupScan();
const GroupScan* Avx512GroupScan();

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_GROUP_SCAN_H_
