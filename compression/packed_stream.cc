#include "compression/packed_stream.h"

#include <zstd.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"

namespace isthmus {
namespace {

struct ContextDeleter {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// The calling thread's: a new one for each stream would be so many fresh pages.
ZSTD_DCtx* UnpackContext() {
  thread_local const std::unique_ptr<ZSTD_DCtx, ContextDeleter> context(ZSTD_createDCtx());
  return context.get();
}

std::string Pack(absl::string_view raw, int level) {
  std::unique_ptr<ZSTD_CCtx, ContextDeleter> context(ZSTD_createCCtx());
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  // The stream's own header holds the length; the frame's checksum covers the bytes.
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_contentSizeFlag, 0);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 0);
  std::string stored(ZSTD_compressBound(raw.size()), '\0');
  // Into a buffer of compressBound bytes this cannot fail short of an exhausted memory.
  const size_t size = ZSTD_compress2(context.get(), &stored[0], stored.size(), raw.data(), raw.size());
  stored.resize(ZSTD_isError(size) ? 0 : size);
  return stored;
}

// Whether it is one zstd frame of the plain form (RFC 8878, 3.1.1: magic, then a descriptor that tells of no
// content size, checksum or dictionary) and nothing else: one content has one form, and no room for others.
bool IsOnePlainFrame(absl::string_view stored) {
  constexpr char kPlainHead[] = {'\x28', '\xB5', '\x2F', '\xFD', 0};
  if (stored.substr(0, sizeof kPlainHead) != absl::string_view(kPlainHead, sizeof kPlainHead)) return false;
  return ZSTD_findFrameCompressedSize(stored.data(), stored.size()) == stored.size();
}

absl::Status Malformed(absl::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(name, " stream: ", what));
}

}  // namespace

void WritePackedStream(absl::string_view raw, int level, ByteWriter* writer) {
  const std::string packed = raw.empty() || level == 0 ? std::string() : Pack(raw, level);
  const bool is_packed = !packed.empty() && packed.size() < raw.size();
  const absl::string_view stored = is_packed ? absl::string_view(packed) : raw;
  writer->Varint(raw.size());
  writer->Varint(stored.size());
  writer->Bytes(stored);
}

absl::Status FindPackedStream(absl::string_view name, uint64_t most_raw_bytes, ByteReader* reader,
                              PackedStream* found) {
  uint64_t raw_bytes = 0, stored_bytes = 0;
  if (!reader->Varint(&raw_bytes) || !reader->Varint(&stored_bytes)) {
    return Malformed(name, "lengths cut short");
  }
  if (raw_bytes > most_raw_bytes) {
    return Malformed(name, absl::StrCat("claims ", raw_bytes, " bytes, at most ", most_raw_bytes, " fit"));
  }
  if (stored_bytes > raw_bytes) {
    return Malformed(name, absl::StrCat("claims ", stored_bytes, " stored bytes for ", raw_bytes));
  }
  if (!reader->Bytes(stored_bytes, &found->stored)) {
    return Malformed(name,
                     absl::StrCat("claims ", stored_bytes, " stored bytes, ", reader->left(), " are left"));
  }
  found->raw_bytes = static_cast<size_t>(raw_bytes);
  return absl::OkStatus();
}

absl::Status UnpackStream(absl::string_view name, const PackedStream& packed, char* raw) {
  const absl::string_view stored = packed.stored;
  if (stored.size() == packed.raw_bytes) {
    std::copy(stored.begin(), stored.end(), raw);
    return absl::OkStatus();
  }
  if (!IsOnePlainFrame(stored)) return Malformed(name, "does not unpack: not one plain zstd frame");
  const size_t size =
      ZSTD_decompressDCtx(UnpackContext(), raw, packed.raw_bytes, stored.data(), stored.size());
  if (ZSTD_isError(size)) return Malformed(name, absl::StrCat("does not unpack: ", ZSTD_getErrorName(size)));
  if (size != packed.raw_bytes)
    return Malformed(name, absl::StrCat("unpacks to ", size, " bytes, not ", packed.raw_bytes));
  return absl::OkStatus();
}

absl::Status ReadPackedStream(absl::string_view name, uint64_t most_raw_bytes, ByteReader* reader,
                              std::string* unpacked, absl::string_view* raw) {
  *raw = absl::string_view();
  PackedStream packed;
  if (absl::Status s = FindPackedStream(name, most_raw_bytes, reader, &packed); !s.ok()) return s;
  if (packed.stored.size() == packed.raw_bytes) {
    *raw = packed.stored;
    return absl::OkStatus();
  }
  unpacked->resize(packed.raw_bytes);
  if (absl::Status s = UnpackStream(name, packed, &(*unpacked)[0]); !s.ok()) return s;
  *raw = *unpacked;
  return absl::OkStatus();
}

absl::Status ReadPackedStream(absl::string_view name, uint64_t most_raw_bytes, ByteReader* reader,
                              std::string* raw) {
  absl::string_view found;
  if (absl::Status s = ReadPackedStream(name, most_raw_bytes, reader, raw, &found); !s.ok()) return s;
  if (found.data() != raw->data()) raw->assign(found.data(), found.size());
  return absl::OkStatus();
}

int64_t PackedStreamBound(int64_t raw_bytes) {
  // Two lengths of at most ten bytes each.
  return 20 + raw_bytes;
}

}  // namespace isthmus
