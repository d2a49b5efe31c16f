// libFuzzer target: frames of every codec. The first byte chooses codec and layout; the checksum is set
// right, so that mutations get past it. Every path must say the same of a frame.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "compression/codec.h"
#include "compression/sealed_bytes.h"

constexpr uint64_t kDigest = 0x0123456789ABCDEFull;

static bool IsSame(const isthmus::DecodedFrame& a, const isthmus::DecodedFrame& b) {
  for (size_t t = 0; t < a.tensors.size(); ++t) {
    const isthmus::DecodedTensor &first = a.tensors[t], &second = b.tensors[t];
    if (first.form != second.form || first.exponent != second.exponent ||
        first.positions != second.positions || first.mantissas != second.mantissas) {
      return false;
    }
  }
  return true;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using isthmus::Layout;
  if (size < 9) return 0;
  static const struct {
    const char* spec;
    Layout layout;
  } kChoices[] = {
      {"topk(k=16)", Layout({4200, 3, 4096}, kDigest)},
      {"topk(k=16)|levels(bits=2)", Layout({4200, 3, 4096}, kDigest)},
      {"topk(k=16)|levels(bits=3)|zstd(3)", Layout({4200, 3, 4096}, kDigest)},
      {"dense", Layout({20, 3}, kDigest)},
      {"dense(bits=8,group=64)", Layout({4096 + 139, 3, 1}, kDigest)},
      {"dense(bits=4,group=64)", Layout({4096 + 139, 3, 1}, kDigest)},
      {"dense(bits=4,group=16,hadamard=7)", Layout({4096 + 139, 3, 1}, kDigest)},
      {"mask(k=64,seed=7)", Layout({4200, 3, 4096}, kDigest)},
      {"topk(k=16,share=energy)|levels(bits=auto)", Layout({4200, 3, 4096}, kDigest)},
      {"topk(k=16)", Layout({32768, 3, 4200}, kDigest, {64, 0, 42})},
  };
  const auto& choice = kChoices[data[0] % (sizeof kChoices / sizeof kChoices[0])];
  const Layout& layout = choice.layout;
  std::string frame(reinterpret_cast<const char*>(data) + 1, size - 9);
  isthmus::EndSealed(&frame);
  const auto oracle =
      std::move(isthmus::ParseCodecSpec(choice.spec, {1, isthmus::SimdPath::kPortable})).value();
  const auto decoded = oracle->Decode(layout, frame);
  for (isthmus::SimdPath path : isthmus::kAllSimdPaths) {
    if (path == isthmus::SimdPath::kPortable || !isthmus::HasSimdPath(path)) continue;
    const auto codec = std::move(isthmus::ParseCodecSpec(choice.spec, {1, path})).value();
    const auto again = codec->Decode(layout, frame);
    if (again.status() != decoded.status()) std::abort();
    if (again.ok() && !IsSame(*again, *decoded)) std::abort();
  }
  if (!decoded.ok()) return 0;
  for (int t = 0; t < layout.tensors(); ++t) {
    const isthmus::DecodedTensor& tensor = decoded->tensors[t];
    for (uint32_t position : tensor.positions) {
      if (position >= layout.size(t)) std::abort();
    }
  }
  return 0;
}
