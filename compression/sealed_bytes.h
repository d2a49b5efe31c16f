// Checksummed envelope shared by frames and updates: magic, version, layout digest … XXH3-64 of all before
// it.
#ifndef ISTHMUS_COMPRESSION_SEALED_BYTES_H_
#define ISTHMUS_COMPRESSION_SEALED_BYTES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compression/byte_io.h"
#include "compression/layout.h"

namespace isthmus {

// Of frames, updates and carried values alike (FORMAT.md). Frozen: other bytes need another number.
inline constexpr uint16_t kFormatVersion = 1;

// What kind of bytes an envelope holds.
struct SealKind {
  absl::string_view name;   // for messages: "frame", "update"
  absl::string_view magic;  // four characters
  uint16_t version = kFormatVersion;
};

// Begins an envelope in *out: magic, version, tensor count, layout digest (18 bytes).
void BeginSealed(const SealKind& kind, const Layout& layout, std::string* out);
// Ends it: appends the checksum of all of *out.
void EndSealed(std::string* out);

// All but the checksum at the end, which is checked. DATA_LOSS, naming `name`: too short, or it differs.
absl::StatusOr<absl::string_view> CheckedBytes(absl::string_view name, absl::string_view bytes);

// Checks the envelope and returns a reader of what lies between digest and checksum. DATA_LOSS: too short or
// the checksum differs; INVALID_ARGUMENT: another kind, version, layout or number of tensors.
absl::StatusOr<ByteReader> OpenSealed(const SealKind& kind, const Layout& layout, absl::string_view bytes);

// Bytes of an envelope around nothing.
inline constexpr int64_t kSealBytes = 26;

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_SEALED_BYTES_H_
