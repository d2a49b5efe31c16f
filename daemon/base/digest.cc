#include "daemon/base/digest.h"

#include <xxhash.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace isthmus {
namespace {

constexpr uint64_t kStateDigestVersion = 1;

void AppendBig(uint64_t v, std::string* out) {
  for (int shift = 56; shift >= 0; shift -= 8) out->push_back(static_cast<char>(v >> shift));
}

uint64_t ReadBig(const char* p) {
  uint64_t v = 0;
  for (int i = 0; i < 8; ++i) v = v << 8 | static_cast<unsigned char>(p[i]);
  return v;
}

Digest DigestOfBytes(const void* data, size_t size) {
  const XXH128_hash_t h = XXH3_128bits(data, size);
  return {h.high64, h.low64};
}

}  // namespace

std::string Digest::ToHex() const { return absl::StrFormat("%016x%016x", high, low); }

std::string Digest::ToBytes() const {
  std::string out;
  AppendBig(high, &out);
  AppendBig(low, &out);
  return out;
}

absl::StatusOr<Digest> DigestFromBytes(absl::string_view bytes) {
  if (bytes.empty()) return Digest();
  if (bytes.size() != 16) {
    return absl::InvalidArgumentError(absl::StrCat("a digest has 16 bytes, this one ", bytes.size()));
  }
  return Digest{ReadBig(bytes.data()), ReadBig(bytes.data() + 8)};
}

Digest DigestOf(absl::string_view bytes) { return DigestOfBytes(bytes.data(), bytes.size()); }

Digest DigestOf(absl::Span<const float> values) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are digested as little-endian bytes");
  return DigestOfBytes(values.data(), values.size() * sizeof(float));
}

Digest StateDigest(const StateStamp& stamp, absl::Span<const DigestTensor> tensors,
                   absl::Span<const float> momentum) {
  std::string text;
  AppendBig(kStateDigestVersion, &text);
  AppendBig(stamp.round, &text);
  AppendBig(stamp.schedule_step, &text);
  AppendBig(stamp.alpha_bits, &text);
  AppendBig(stamp.momentum_bits, &text);
  AppendBig(tensors.size(), &text);
  for (const DigestTensor& t : tensors) {
    AppendBig(t.name.size(), &text);
    text.append(t.name.data(), t.name.size());
    AppendBig(t.shape.size(), &text);
    for (int64_t n : t.shape) AppendBig(n, &text);
    text += DigestOf(t.values).ToBytes();
  }
  if (!momentum.empty()) text += DigestOf(momentum).ToBytes();
  return DigestOf(text);
}

}  // namespace isthmus
