#include "compression/sealed_bytes.h"

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include "absl/strings/str_cat.h"

namespace isthmus {

void BeginSealed(const SealKind& kind, const Layout& layout, std::string* out) {
  ByteWriter writer(out);
  writer.Bytes(kind.magic);
  writer.U16(kind.version);
  writer.U32(static_cast<uint32_t>(layout.tensors()));
  writer.U64(layout.digest());
}

void EndSealed(std::string* out) {
  const uint64_t checksum = XXH3_64bits(out->data(), out->size());
  ByteWriter(out).U64(checksum);
}

absl::StatusOr<absl::string_view> CheckedBytes(absl::string_view name, absl::string_view bytes) {
  if (bytes.size() < 8) {
    return absl::DataLossError(absl::StrCat(name, " of ", bytes.size(), " bytes: cut short"));
  }
  const absl::string_view covered = bytes.substr(0, bytes.size() - 8);
  uint64_t checksum = 0;
  ByteReader(bytes.substr(covered.size())).U64(&checksum);
  if (checksum == XXH3_64bits(covered.data(), covered.size())) return covered;
  return absl::DataLossError(
      absl::StrCat(name, " of ", bytes.size(), " bytes: checksum differs, so it was damaged or cut short"));
}

absl::StatusOr<ByteReader> OpenSealed(const SealKind& kind, const Layout& layout, absl::string_view bytes) {
  if (bytes.size() < kSealBytes) {
    return absl::DataLossError(
        absl::StrCat(kind.name, " of ", bytes.size(), " bytes is cut short: the least is ", kSealBytes));
  }
  const absl::StatusOr<absl::string_view> covered = CheckedBytes(kind.name, bytes);
  if (!covered.ok()) return covered.status();
  ByteReader reader(*covered);
  absl::string_view magic;
  uint16_t version = 0;
  uint32_t tensors = 0;
  uint64_t digest = 0;
  reader.Bytes(4, &magic);
  reader.U16(&version);
  reader.U32(&tensors);
  reader.U64(&digest);
  if (magic != kind.magic)
    return absl::InvalidArgumentError(absl::StrCat("wrong magic: this is no ", kind.name));
  if (version != kind.version) {
    return absl::InvalidArgumentError(
        absl::StrCat(kind.name, " of version ", version, ", this program reads ", kind.version));
  }
  if (digest != layout.digest()) {
    return absl::InvalidArgumentError(absl::StrCat(kind.name, " of layout ",
                                                   absl::Hex(digest, absl::kZeroPad16), ", ours is ",
                                                   absl::Hex(layout.digest(), absl::kZeroPad16)));
  }
  if (tensors != static_cast<uint32_t>(layout.tensors())) {
    return absl::InvalidArgumentError(
        absl::StrCat(kind.name, " of ", tensors, " tensors, the layout has ", layout.tensors()));
  }
  return reader;
}

}  // namespace isthmus
