#include "compression/group_scan.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace isthmus {
namespace {

uint32_t Magnitude(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, sizeof bits);
  return bits & 0x7FFFFFFFu;
}

void Largest(const float* in, int values, int group, uint32_t* largest) {
  for (int at = 0; at < values; at += group, ++largest) {
    *largest = 0;
    for (int i = at; i < std::min(at + group, values); ++i) *largest = std::max(*largest, Magnitude(in[i]));
  }
}

void Difference(const float* anchor, const float* parameters, int values, int group, float* differences,
                uint32_t* largest) {
  for (int i = 0; i < values; ++i) differences[i] = anchor[i] - parameters[i];
  Largest(differences, values, group, largest);
}

// In double the product is exact, whatever the exponent.
int Quantized(float in, int exponent, int most) {
  const double scaled = std::nearbyint(std::ldexp(static_cast<double>(in), -exponent));
  return static_cast<int>(std::clamp<double>(scaled, -most, most));
}

void Quantize8(const float* in, int values, int group, const int* exponents, uint8_t* out) {
  for (int i = 0; i < values; ++i) out[i] = static_cast<uint8_t>(Quantized(in[i], exponents[i / group], 127));
}

void Quantize4(const float* in, int values, int group, const int* exponents, uint8_t* out) {
  for (int i = 0; i < values; ++i) {
    const int nibble = Quantized(in[i], exponents[i / group], 7) & 15;
    out[i / 2] = static_cast<uint8_t>(i % 2 == 0 ? nibble : out[i / 2] | nibble << 4);
  }
}

bool Decode8(const uint8_t* in, int values, int group, const uint8_t* shifts, int32_t* out) {
  bool fits = true;
  for (int i = 0; i < values; ++i) {
    const int32_t m = static_cast<int8_t>(in[i]);
    fits &= m != -128;
    out[i] = m * (1 << shifts[i / group]);
  }
  return fits;
}

bool Decode4(const uint8_t* in, int values, int group, const uint8_t* shifts, int32_t* out) {
  bool fits = true;
  for (int i = 0; i < values; ++i) {
    const int32_t nibble = in[i / 2] >> (4 * (i % 2)) & 15;
    fits &= nibble != 8;
    out[i] = ((nibble ^ 8) - 8) * (1 << shifts[i / group]);
  }
  return fits;
}

template <typename T>
void Hadamard(T* inout, int values) {
  for (int distance = 1; distance < values; distance *= 2) {
    for (int at = 0; at < values; at += 2 * distance) {
      for (int i = at; i < at + distance; ++i) {
        const T a = inout[i], b = inout[i + distance];
        inout[i] = a + b;
        inout[i + distance] = a - b;
      }
    }
  }
}

constexpr GroupScan kScan{Difference, Largest, Quantize8,       Quantize4,
                          Decode8,    Decode4, Hadamard<float>, Hadamard<int32_t>};

}  // namespace

const GroupScan& PortableGroupScan() { return kScan; }

const GroupScan& GroupScanOf(SimdPath path) {
  const GroupScan* scan = nullptr;
  if (HasSimdPath(path)) {
    if (path == SimdPath::kAvx2) scan = Avx2GroupScan();
    if (path == SimdPath::kAvx512) scan = Avx512GroupScan();
  }
  return scan == nullptr ? kScan : *scan;
}

}  // namespace isthmus
