// libFuzzer target: updates. What decodes must come back from its own encoding.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "compression/sealed_bytes.h"
#include "compression/update.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using isthmus::Layout;
  if (size < 9) return 0;
  const Layout layout = data[0] % 2 == 1 ? Layout({20, 3}, 0x0123456789ABCDEFull)
                                         : Layout({4200, 3, 4096}, 0x0123456789ABCDEFull);
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 9);
  isthmus::EndSealed(&bytes);
  const auto update = isthmus::DecodeUpdate(layout, bytes);
  if (!update.ok()) return 0;
  const auto again = isthmus::DecodeUpdate(layout, isthmus::EncodeUpdate(layout, *update));
  if (!again.ok()) std::abort();
  for (int t = 0; t < layout.tensors(); ++t) {
    const isthmus::UpdateTensor &first = update->tensors[t], &second = again->tensors[t];
    if (second.positions != first.positions || second.sums != first.sums || second.weights != first.weights) {
      std::abort();
    }
  }
  return 0;
}
