#include "compression/carry_forms.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace isthmus {
namespace {

using Kind = CodecSpec::Kind;

// The quantiles of a normal distribution that NF4 is named for, as its authors published them (2305.14314).
constexpr float kNf4[16] = {-1.0f,         -0.696192801f, -0.525073051f,  -0.394917488f,
                            -0.284441382f, -0.184773430f, -0.0910500363f, 0.0f,
                            0.0795802996f, 0.160930201f,  0.246112302f,   0.337915242f,
                            0.440709829f,  0.562617004f,  0.722956836f,   1.0f};
constexpr int kNf4Zero = 7;

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Byte b of number i is at b · count + i.
class Planes {
 public:
  Planes(char* bytes, int64_t count) : bytes_(bytes), count_(count) {}
  void Put(int64_t i, uint32_t number, int width) {
    for (int b = 0; b < width; ++b) bytes_[b * count_ + i] = static_cast<char>(number >> (8 * b));
  }
  static uint32_t Get(absl::string_view bytes, int64_t count, int64_t i, int width) {
    uint32_t number = 0;
    for (int b = 0; b < width; ++b) {
      number |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[b * count + i])) << (8 * b);
    }
    return number;
  }

 private:
  char* bytes_;
  int64_t count_;
};

int64_t GroupsOf(const CodecSpec& spec, int64_t values) { return (values + spec.group - 1) / spec.group; }

float Largest(absl::Span<const float> values) {
  float largest = 0;
  for (float v : values) largest = std::max(largest, std::fabs(v));
  return largest;
}

// Least e from −126 on with largest · 2^−e ≤ 464; at most 120.
int E4M3Exponent(float largest) {
  int exponent = 0;
  const double fraction = std::frexp(static_cast<double>(largest), &exponent);
  return std::max(fraction <= 464.0 / 512 ? exponent - 9 : exponent - 8, -126);
}

constexpr int kMostE4M3Exponent = 120;

void EncodeFp8(absl::Span<const float> values, CarryStreams* streams, int group) {
  for (size_t at = 0, g = 0; at < values.size(); at += group, ++g) {
    const absl::Span<const float> of_group = values.subspan(at, group);
    const float largest = Largest(of_group);
    if (largest == 0) continue;
    const int e = E4M3Exponent(largest);
    const double scale = std::ldexp(1.0, -e);
    // At the top 256 would not come back finite.
    const double most = e == kMostE4M3Exponent ? 240 : 448;
    streams->scales[g] = static_cast<char>(e + 127);
    for (size_t i = 0; i < of_group.size(); ++i) {
      const double scaled = std::clamp(of_group[i] * scale, -most, most);
      streams->values[at + i] = static_cast<char>(E4M3Of(static_cast<float>(scaled)));
    }
  }
}

bool DecodeFp8(absl::string_view scales, absl::string_view coded, int group, absl::Span<float> values) {
  float worth[256];
  for (int code = 0; code < 256; ++code) worth[code] = FloatOfE4M3(static_cast<uint8_t>(code));
  bool fits = true;
  for (size_t at = 0, g = 0; at < values.size(); at += group, ++g) {
    const int sent = static_cast<uint8_t>(scales[g]);
    fits &= sent <= kMostE4M3Exponent + 127;
    const double scale = sent == 0 ? 0 : std::ldexp(1.0, sent - 127);
    for (size_t i = at; i < std::min(at + group, values.size()); ++i) {
      const uint8_t code = static_cast<uint8_t>(coded[i]);
      values[i] = static_cast<float>(worth[code] * scale);
      fits &= (code & 0x7F) != 0x7F && std::isfinite(values[i]);
    }
  }
  return fits;
}

void EncodeNf4(absl::Span<const float> values, CarryStreams* streams, int group) {
  const int64_t groups = static_cast<int64_t>(streams->scales.size()) / 2;
  Planes scales(&streams->scales[0], groups);
  for (size_t at = 0, g = 0; at < values.size(); at += group, ++g) {
    const absl::Span<const float> of_group = values.subspan(at, group);
    const uint16_t bits = std::min<uint16_t>(Bf16Of(Largest(of_group)), 0x7F7F);
    scales.Put(static_cast<int64_t>(g), bits, 2);
    const double scale = FloatOfBf16(bits);
    for (size_t i = at; i < at + of_group.size(); ++i) {
      int code = kNf4Zero;
      if (scale > 0) {
        const double scaled = values[i] / scale;
        code = 0;
        while (code < 15 && scaled > (static_cast<double>(kNf4[code]) + kNf4[code + 1]) / 2) ++code;
      }
      streams->values[i / 2] |= static_cast<char>(code << (4 * (i % 2)));
    }
  }
}

bool DecodeNf4(absl::string_view scales, absl::string_view coded, int group, absl::Span<float> values) {
  const int64_t groups = static_cast<int64_t>(scales.size()) / 2;
  bool fits = true;
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t scale = Planes::Get(scales, groups, static_cast<int64_t>(i / group), 2);
    fits &= scale < 0x7F80;
    values[i] = kNf4[static_cast<uint8_t>(coded[i / 2]) >> (4 * (i % 2)) & 15] *
                FloatOfBf16(static_cast<uint16_t>(scale));
  }
  return fits && (values.size() % 2 == 0 || static_cast<uint8_t>(coded.back()) < 16);
}

}  // namespace

uint16_t Bf16Of(float value) {
  const uint32_t bits = BitsOf(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

float FloatOfBf16(uint16_t bits) { return FloatOf(static_cast<uint32_t>(bits) << 16); }

uint8_t E4M3Of(float value) {
  const uint32_t bits = BitsOf(value), sign = bits >> 24 & 0x80, magnitude = bits & 0x7FFFFFFFu;
  if (magnitude < (127 - 6) << 23) {  // below 2^−6: steps of 2^−9
    return static_cast<uint8_t>(sign | static_cast<uint32_t>(std::nearbyint(FloatOf(magnitude) * 512.0f)));
  }
  const uint32_t rounded = (magnitude + 0x7FFFF + (magnitude >> 20 & 1)) >> 20;
  return static_cast<uint8_t>(sign | (rounded - ((127 - 7) << 3)));
}

float FloatOfE4M3(uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                        : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return code & 0x80 ? -magnitude : magnitude;
}

int64_t CarryScaleBytes(const CodecSpec& spec, int64_t values) {
  if (spec.kind == Kind::kFp8) return GroupsOf(spec, values);
  return spec.kind == Kind::kNf4 ? 2 * GroupsOf(spec, values) : 0;
}

int64_t CarryValueBytes(const CodecSpec& spec, int64_t values) { return (values * spec.value_bits + 7) / 8; }

void EncodeCarried(const CodecSpec& spec, absl::Span<const float> values, CarryStreams* streams) {
  const int64_t count = static_cast<int64_t>(values.size());
  streams->scales.assign(static_cast<size_t>(CarryScaleBytes(spec, count)), '\0');
  streams->values.assign(static_cast<size_t>(CarryValueBytes(spec, count)), '\0');
  Planes planes(&streams->values[0], count);
  switch (spec.kind) {
    case Kind::kFp32:
      for (int64_t i = 0; i < count; ++i) planes.Put(i, BitsOf(values[i]), 4);
      return;
    case Kind::kBf16:
      for (int64_t i = 0; i < count; ++i) planes.Put(i, Bf16Of(values[i]), 2);
      return;
    case Kind::kFp8:
      return EncodeFp8(values, streams, spec.group);
    default:
      return EncodeNf4(values, streams, spec.group);
  }
}

bool DecodeCarried(const CodecSpec& spec, absl::string_view scales, absl::string_view coded,
                   absl::Span<float> values) {
  const int64_t count = static_cast<int64_t>(values.size());
  switch (spec.kind) {
    case Kind::kFp32:
      for (int64_t i = 0; i < count; ++i) values[i] = FloatOf(Planes::Get(coded, count, i, 4));
      return true;
    case Kind::kBf16:
      for (int64_t i = 0; i < count; ++i) {
        values[i] = FloatOfBf16(static_cast<uint16_t>(Planes::Get(coded, count, i, 2)));
      }
      return true;
    case Kind::kFp8:
      return DecodeFp8(scales, coded, spec.group, values);
    default:
      return DecodeNf4(scales, coded, spec.group, values);
  }
}

}  // namespace isthmus
