// libFuzzer target: carried values of every form. The first byte chooses the form; the checksum is set right,
// so that mutations get past it. What decodes must come back from its own encoding.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "compression/carry_codec.h"
#include "compression/sealed_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 9) return 0;
  static const char* const kSpecs[] = {"fp32", "bf16", "fp8(group=16)", "nf4(group=16)"};
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 9);
  isthmus::EndSealed(&bytes);
  const auto codec = std::move(isthmus::ParseCarrySpec(kSpecs[data[0] % 4])).value();
  std::vector<float> values(75), again(75);
  if (!codec->Decode(bytes, absl::MakeSpan(values)).ok()) return 0;
  const auto encoded = codec->Encode(values);
  if (!encoded.ok() || !codec->Decode(*encoded, absl::MakeSpan(again)).ok()) std::abort();
  const int form = data[0] % 4;
  const bool is_same = std::memcmp(values.data(), again.data(), sizeof(float) * values.size()) == 0;
  if (form == 0 && !is_same) std::abort();
  for (float v : again) {
    if (form >= 2 && !std::isfinite(v)) std::abort();
  }
  return 0;
}
