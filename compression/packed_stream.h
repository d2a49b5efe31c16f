// A byte stream inside a frame or update: raw length, stored length, and a zstd frame, or the bytes as they
// are where zstd would not make them fewer.
//
// The reader is told the largest raw length it may make, so that a small input cannot ask for a large buffer.
#ifndef ISTHMUS_COMPRESSION_PACKED_STREAM_H_
#define ISTHMUS_COMPRESSION_PACKED_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "compression/byte_io.h"

namespace isthmus {

// Appends `raw` packed by zstd at `level` (1 … 19), or as it is where that is no longer, and at level 0. An
// empty stream is two zero bytes.
void WritePackedStream(absl::string_view raw, int level, ByteWriter* writer);

// A stream that was found but not unpacked yet.
struct PackedStream {
  size_t raw_bytes = 0;
  absl::string_view stored;  // of the reader's bytes
};

// Finds the next stream of `reader`. Fails as ReadPackedStream does, but does not look at what is stored.
absl::Status FindPackedStream(absl::string_view name, uint64_t most_raw_bytes, ByteReader* reader,
                              PackedStream* found);

// Writes its raw_bytes to `raw`. INVALID_ARGUMENT, naming `name`, when it does not unpack to exactly so many.
absl::Status UnpackStream(absl::string_view name, const PackedStream& packed, char* raw);

// Makes *raw the next stream of `reader`: a view of the reader's bytes where they are stored as they are, of
// *unpacked otherwise. Fails as below.
absl::Status ReadPackedStream(absl::string_view name, uint64_t most_raw_bytes, ByteReader* reader,
                              std::string* unpacked, absl::string_view* raw);

// Replaces *raw by the next stream of `reader`. INVALID_ARGUMENT, naming `name`, when it is cut short, claims
// more than `most_raw_bytes`, or does not unpack to exactly what it claims; memory stays below
// most_raw_bytes.
absl::Status ReadPackedStream(absl::string_view name, uint64_t most_raw_bytes, ByteReader* reader,
                              std::string* raw);

// Most bytes WritePackedStream appends for a raw stream of at most `raw_bytes`.
int64_t PackedStreamBound(int64_t raw_bytes);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_PACKED_STREAM_H_
