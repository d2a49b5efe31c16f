// libFuzzer target: frames of every codec. The first byte chooses codec and layout; the checksum is set
// right, so that mutations get past it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "compression/codec.h"
#include "compression/sealed_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using isthmus::Layout;
  if (size < 9) return 0;
  static const char* const kSpecs[] = {"topk(k=16)", "topk(k=16)|levels(bits=2)",
                                       "topk(k=16)|levels(bits=3)|zstd(3)", "dense"};
  const Layout layout = data[0] % 4 == 3 ? Layout({20, 3}, 0x0123456789ABCDEFull)
                                         : Layout({4200, 3, 4096}, 0x0123456789ABCDEFull);
  std::string frame(reinterpret_cast<const char*>(data) + 1, size - 9);
  isthmus::EndSealed(&frame);
  const auto codec = std::move(isthmus::ParseCodecSpec(kSpecs[data[0] % 4])).value();
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
