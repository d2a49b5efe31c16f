// The header of a safetensors file: names, types, shapes and places of tensors, and text metadata.
//
// Format (Hugging Face): eight bytes of little-endian header length, a JSON object, then the tensors' bytes
// back to back. Reading treats the file as hostile: bounds before allocation, no crash on any input.
#ifndef ISTHMUS_DAEMON_STORE_SAFETENSORS_H_
#define ISTHMUS_DAEMON_STORE_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/exchange/transport.h"

namespace isthmus {

// What the format's own implementation accepts at most as a header.
inline constexpr int64_t kSafetensorsHeaderLimitBytes = 100'000'000;

struct SafetensorsTensor {
  std::string name;
  std::string type;            // "F32", "BF16", …
  std::vector<int64_t> shape;  // empty: one value
  int64_t begin = 0;           // offsets into the data, which starts after the header
  int64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<SafetensorsTensor> tensors;  // in the order of their bytes
  int64_t data_offset = 0;                 // where the data starts in the file
};

// Length, JSON and padding, as they stand in front of the data. `tensors` must lie back to back from 0.
std::string EncodeSafetensorsHeader(const std::map<std::string, std::string>& metadata,
                                    const std::vector<SafetensorsTensor>& tensors);

// INVALID_ARGUMENT when malformed: header beyond `limit_bytes` or the file, bad JSON, unknown type, shape and
// bytes that disagree, tensors that overlap, leave holes, or do not end where the file does.
absl::StatusOr<SafetensorsHeader> ReadSafetensorsHeader(const BlobSource& file, int64_t limit_bytes);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_STORE_SAFETENSORS_H_
