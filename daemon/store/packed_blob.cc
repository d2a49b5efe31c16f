#include "daemon/store/packed_blob.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "daemon/base/digest.h"
#include "daemon/base/status.h"

namespace isthmus {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "lengths are copied as they are");

constexpr char kMagic[] = "ISPK\x01";
constexpr size_t kMagicBytes = 5;
constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr size_t kPlanes = 4;
constexpr size_t kDigestBytes = 16;

std::string ToPlanes(absl::string_view plain) {
  std::string planes(plain.size(), '\0');
  size_t at = 0;
  for (size_t p = 0; p < kPlanes; ++p) {
    for (size_t i = p; i < plain.size(); i += kPlanes) planes[at++] = plain[i];
  }
  return planes;
}

void FromPlanes(absl::string_view planes, char* plain) {
  size_t at = 0;
  for (size_t p = 0; p < kPlanes; ++p) {
    for (size_t i = p; i < planes.size(); i += kPlanes) plain[i] = planes[at++];
  }
}

template <typename Number>
std::string NumberBytes(Number n) {
  return std::string(reinterpret_cast<const char*>(&n), sizeof n);
}

// Takes a number off the front; false when there are too few bytes.
template <typename Number>
bool TakeNumber(absl::string_view* bytes, Number* n) {
  if (bytes->size() < sizeof *n) return false;
  std::memcpy(n, bytes->data(), sizeof *n);
  bytes->remove_prefix(sizeof *n);
  return true;
}

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("packed blob: ", what));
}

}  // namespace

BlobPacker::BlobPacker(int64_t plain_bytes, int level, const Sink& sink)
    : plain_bytes_(plain_bytes), level_(level), sink_(sink) {}

absl::Status BlobPacker::Emit(absl::string_view packed) {
  if (!has_begun_) {
    has_begun_ = true;
    ISTHMUS_RETURN_IF_ERROR(
        sink_(absl::StrCat(absl::string_view(kMagic, kMagicBytes), NumberBytes<int64_t>(plain_bytes_))));
  }
  return packed.empty() ? absl::OkStatus() : sink_(packed);
}

absl::Status BlobPacker::Add(absl::string_view plain) {
  given_ += static_cast<int64_t>(plain.size());
  while (!plain.empty()) {
    const size_t take = std::min(kPieceBytes - piece_.size(), plain.size());
    piece_.append(plain.data(), take);
    plain.remove_prefix(take);
    if (piece_.size() == kPieceBytes) ISTHMUS_RETURN_IF_ERROR(Flush());
  }
  return absl::OkStatus();
}

absl::Status BlobPacker::Finish() {
  if (given_ != plain_bytes_) {
    return absl::FailedPreconditionError(
        absl::StrCat("packed blob: given ", given_, " bytes of ", plain_bytes_));
  }
  if (!piece_.empty()) ISTHMUS_RETURN_IF_ERROR(Flush());
  return Emit("");
}

absl::Status BlobPacker::Flush() {
  const std::string planes = ToPlanes(piece_);
  std::string stored(ZSTD_compressBound(planes.size()), '\0');
  const size_t bytes = ZSTD_compress(&stored[0], stored.size(), planes.data(), planes.size(), level_);
  if (ZSTD_isError(bytes)) return absl::InternalError(absl::StrCat("zstd: ", ZSTD_getErrorName(bytes)));
  stored.resize(bytes);
  const std::string digest = DigestOf(absl::string_view(piece_)).ToBytes();
  piece_.clear();
  return Emit(absl::StrCat(NumberBytes(static_cast<uint32_t>(bytes)), digest, stored));
}

absl::StatusOr<std::string> UnpackBlob(absl::string_view packed, int64_t plain_bytes) {
  int64_t claimed = 0;
  if (packed.substr(0, kMagicBytes) != absl::string_view(kMagic, kMagicBytes)) {
    return Malformed("does not begin as one of version 1");
  }
  packed.remove_prefix(kMagicBytes);
  if (!TakeNumber(&packed, &claimed)) return Malformed("cut short");
  if (claimed != plain_bytes || claimed < 0) {
    return Malformed(absl::StrCat("is of ", claimed, " bytes, not ", plain_bytes));
  }
  // Grows with what is really there: no piece's frame of a few bytes asks for more than a piece.
  std::string plain, planes;
  for (size_t left = static_cast<size_t>(plain_bytes); left > 0;) {
    const size_t want = std::min(left, kPieceBytes);
    uint32_t stored = 0;
    if (!TakeNumber(&packed, &stored) || packed.size() < kDigestBytes + stored) return Malformed("cut short");
    const absl::string_view digest = packed.substr(0, kDigestBytes);
    packed.remove_prefix(kDigestBytes);
    planes.resize(want);
    const size_t bytes = ZSTD_decompress(&planes[0], want, packed.data(), stored);
    if (ZSTD_isError(bytes) || bytes != want) return Malformed("a piece does not unpack");
    packed.remove_prefix(stored);
    plain.resize(plain.size() + want);
    char* const piece = &plain[plain.size() - want];
    FromPlanes(planes, piece);
    if (DigestOf(absl::string_view(piece, want)).ToBytes() != digest) {
      return absl::DataLossError("packed blob: a piece's digest is another");
    }
    left -= want;
  }
  return packed.empty() ? absl::StatusOr<std::string>(std::move(plain)) : Malformed("bytes are left over");
}

}  // namespace isthmus
