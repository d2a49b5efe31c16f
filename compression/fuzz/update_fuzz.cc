// libFuzzer target: updates. What decodes must come back from its own encoding, and every path and memory
// used before must say the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "compression/sealed_bytes.h"
#include "compression/update.h"

static bool IsSame(const isthmus::Update& a, const isthmus::Update& b) {
  for (size_t t = 0; t < a.tensors.size(); ++t) {
    const isthmus::UpdateTensor &first = a.tensors[t], &second = b.tensors[t];
    if (first.positions != second.positions || first.sums != second.sums || first.weights != second.weights)
      return false;
  }
  return true;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using isthmus::Layout;
  if (size < 9) return 0;
  const Layout layout = data[0] % 2 == 1 ? Layout({20, 3}, 0x0123456789ABCDEFull)
                                         : Layout({4200, 3, 4096}, 0x0123456789ABCDEFull);
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 9);
  isthmus::EndSealed(&bytes);
  const auto update = isthmus::DecodeUpdate(layout, bytes);
  static isthmus::UpdateScratch portable(isthmus::SimdPath::kPortable);
  static isthmus::Update used;
  if (isthmus::DecodeUpdate(layout, bytes, &portable, &used) != update.status()) std::abort();
  if (!update.ok()) return 0;
  if (!IsSame(used, *update)) std::abort();
  if (isthmus::EncodeUpdate(layout, used, &portable) != isthmus::EncodeUpdate(layout, *update)) std::abort();
  const auto again = isthmus::DecodeUpdate(layout, isthmus::EncodeUpdate(layout, *update));
  if (!again.ok() || !IsSame(*again, *update)) std::abort();
  return 0;
}
