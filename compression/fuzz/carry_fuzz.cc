// libFuzzer target: what is carried. Values are encoded, bytes of the outcome changed and the checksum set
// right, so that no corpus is needed to begin from; what was not changed must come back.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "compression/carry_codec.h"
#include "compression/sealed_bytes.h"

namespace {

constexpr size_t kHead = 3;    // codec, number of values, number of changes
constexpr size_t kChange = 4;  // place (2 bytes), new byte, whether it replaces, goes in or is taken out

void Change(const uint8_t* change, std::string* bytes) {
  if (bytes->empty()) return;
  const size_t at = (change[0] | change[1] << 8) % bytes->size();
  switch (change[3] % 4) {
    case 0:
      bytes->insert(at, 1, static_cast<char>(change[2]));
      break;
    case 1:
      bytes->erase(at, 1 + change[2] % 8);
      break;
    default:
      (*bytes)[at] = static_cast<char>(change[2]);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const char* const kSpecs[] = {"fp32|zstd(0)",
                                       "bf16|zstd(0)",
                                       "fp8(group=128)|zstd(0)",
                                       "nf4(group=64)|zstd(0)",
                                       "fp32|zstd(1)",
                                       "dense(bits=24)|zstd(0)",
                                       "dense(bits=8,group=64)|zstd(0)",
                                       "topk(k=64)|levels(bits=2)|gaps|zstd(0)"};
  if (size < kHead) return 0;
  const auto codec = std::move(isthmus::ParseCarrySpec(kSpecs[data[0] % 8])).value();
  std::vector<float> values(data[1]), read(data[1]);
  const size_t changes = std::min<size_t>(data[2] % 8, (size - kHead) / kChange);
  const uint8_t* rest = data + kHead + changes * kChange;
  const size_t left = size - kHead - changes * kChange;
  for (size_t i = 0; i < values.size() && left > 0; ++i) {
    uint32_t bits = 0;
    for (size_t b = 0; b < 4; ++b) bits |= uint32_t{rest[(4 * i + b) % left]} << (8 * b);
    std::memcpy(&values[i], &bits, sizeof(bits));
  }
  auto bytes = codec->Encode(values);
  if (!bytes.ok()) return 0;  // NaN or Inf, which not all of them carry
  if (changes == 0) {
    if (!codec->Decode(*bytes, absl::MakeSpan(read)).ok()) std::abort();
    return 0;
  }
  std::string changed = bytes->substr(0, bytes->size() - std::min<size_t>(8, bytes->size()));
  for (size_t c = 0; c < changes; ++c) Change(data + kHead + c * kChange, &changed);
  isthmus::EndSealed(&changed);
  codec->Decode(changed, absl::MakeSpan(read)).IgnoreError();
  return 0;
}
