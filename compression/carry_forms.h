// How floats become the streams of carried values (FORMAT.md): one pair of functions for each form.
//
// The floating-point mode is the caller's to set plain.
#ifndef ISTHMUS_COMPRESSION_CARRY_FORMS_H_
#define ISTHMUS_COMPRESSION_CARRY_FORMS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/codec_spec.h"

namespace isthmus {

struct CarryStreams {
  std::string scales, values;
};

// Lengths of the streams of `values` values in this carry-only form; every decoder wants exactly these.
int64_t CarryScaleBytes(const CodecSpec& spec, int64_t values);
int64_t CarryValueBytes(const CodecSpec& spec, int64_t values);

// Fills both streams; with fp8 and nf4 all values are finite.
void EncodeCarried(const CodecSpec& spec, absl::Span<const float> values, CarryStreams* streams);

// False when a byte is one no encoder writes. The streams are as long as they have to be.
bool DecodeCarried(const CodecSpec& spec, absl::string_view scales, absl::string_view coded,
                   absl::Span<float> values);

// To the nearest of sixteen bits, halves to even; Inf stays, and values beyond the largest become it; a NaN
// stays one, and quiet.
uint16_t Bf16Of(float value);
float FloatOfBf16(uint16_t bits);

// The nearest number of eight bits, four of them exponent, halves to even; |value| ≤ 464, 448 is the largest.
uint8_t E4M3Of(float value);
float FloatOfE4M3(uint8_t code);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_CARRY_FORMS_H_
