// libFuzzer target: frames of every codec. The first byte chooses codec and layout; the checksum is set
// right, so that mutations get past it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "compression/codec.h"
#include "compression/sealed_bytes.h"

constexpr uint64_t kDigest = 0x0123456789ABCDEFull;

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
  const auto codec = std::move(isthmus::ParseCodecSpec(choice.spec)).value();
  const auto decoded = codec->Decode(layout, frame);
  if (!decoded.ok()) return 0;
  for (int t = 0; t < layout.tensors(); ++t) {
    const isthmus::DecodedTensor& tensor = decoded->tensors[t];
    for (uint32_t position : tensor.positions) {
      if (position >= layout.size(t)) std::abort();
    }
  }
  return 0;
}
