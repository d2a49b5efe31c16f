#include "compression/stream_sizes.h"

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compression/byte_io.h"
#include "compression/sealed_bytes.h"

namespace isthmus {
namespace {

constexpr size_t kHead = 18, kChecksum = 8;  // of an envelope

absl::Status Cut(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": cut short or with bytes left over"));
}

absl::StatusOr<ByteReader> Inside(absl::string_view what, absl::string_view bytes) {
  if (bytes.size() < static_cast<size_t>(kSealBytes)) return Cut(what);
  return ByteReader(bytes.substr(kHead, bytes.size() - kHead - kChecksum));
}

// Adds each stream's bytes, in order, to where it belongs.
absl::Status AddSome(absl::string_view what, ByteReader* reader, absl::Span<int64_t* const> parts) {
  for (int64_t* part : parts) {
    const size_t before = reader->left();
    uint64_t raw, stored;
    absl::string_view ignored;
    if (!reader->Varint(&raw) || !reader->Varint(&stored) || !reader->Bytes(stored, &ignored))
      return Cut(what);
    *part += static_cast<int64_t>(before - reader->left());
  }
  return absl::OkStatus();
}

// The same with the last streams there are.
absl::Status AddStreams(absl::string_view what, ByteReader* reader, absl::Span<int64_t* const> parts) {
  if (absl::Status s = AddSome(what, reader, parts); !s.ok()) return s;
  return reader->left() == 0 ? absl::OkStatus() : Cut(what);
}

}  // namespace

absl::StatusOr<FrameSizes> SizesOfFrame(absl::string_view frame) {
  absl::StatusOr<ByteReader> reader = Inside("frame", frame);
  if (!reader.ok()) return reader.status();
  FrameSizes sizes;
  uint16_t spec;
  absl::string_view ignored;
  if (!reader->U16(&spec) || !reader->Bytes(spec, &ignored)) return Cut("frame");
  sizes.head = kSealBytes + 2 + spec;
  uint8_t is_piece = 0;
  while (reader->U8(&is_piece) && is_piece != 0) {
    ++sizes.head;
    if (absl::Status s = AddSome("frame", &*reader, {&sizes.positions, &sizes.values}); !s.ok()) return s;
  }
  ++sizes.head;
  const absl::Status s = AddStreams("frame", &*reader, {&sizes.levels, &sizes.table});
  if (!s.ok()) return s;
  return sizes;
}

absl::StatusOr<UpdateSizes> SizesOfUpdate(absl::string_view update) {
  absl::StatusOr<ByteReader> reader = Inside("update", update);
  if (!reader.ok()) return reader.status();
  UpdateSizes sizes;
  uint8_t averaging;
  uint64_t total_weight;
  const size_t before = reader->left();
  if (!reader->U8(&averaging) || !reader->Varint(&total_weight)) return Cut("update");
  sizes.head = kSealBytes + static_cast<int64_t>(before - reader->left());
  // In the order of UpdateStreams.
  const absl::Status s = AddStreams("update", &*reader,
                                    {&sizes.head, &sizes.positions, &sizes.positions, &sizes.names,
                                     &sizes.literals, &sizes.literals, &sizes.literals, &sizes.literals,
                                     &sizes.names, &sizes.names, &sizes.signs, &sizes.dense, &sizes.dense});
  if (!s.ok()) return s;
  return sizes;
}

}  // namespace isthmus
