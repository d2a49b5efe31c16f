// A file's bytes as they travel compressed: a snapshot on its way to a worker.
//
//   "ISPK", version (1 byte), length of the plain bytes (8 bytes, little-endian), then for every piece of 1
//   MiB of them (the last one shorter): stored length (4 bytes, little-endian), XXH3-128 of the plain piece
//   (16 bytes), and a zstd frame of the piece's bytes 0, 4, 8, …, then 1, 5, 9, …, and so on, so that what
//   fp32 values have in common lies together.
//
// Lossless; piece by piece, so that nothing large is in memory twice. Reading treats the bytes as hostile.
#ifndef ISTHMUS_DAEMON_STORE_PACKED_BLOB_H_
#define ISTHMUS_DAEMON_STORE_PACKED_BLOB_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace isthmus {

// Packs what it is given, in any portions. One use; not thread-safe.
class BlobPacker {
 public:
  using Sink = std::function<absl::Status(absl::string_view piece)>;

  // `plain_bytes` will be given in all; `level` is zstd's, 1 … 19. `sink` takes the packed bytes and must
  // outlive the packer.
  BlobPacker(int64_t plain_bytes, int level, const Sink& sink);

  // The sink's status. FAILED_PRECONDITION from Finish when not exactly `plain_bytes` were given.
  absl::Status Add(absl::string_view plain);
  absl::Status Finish();

 private:
  absl::Status Flush();
  absl::Status Emit(absl::string_view packed);

  const int64_t plain_bytes_;
  const int level_;
  const Sink& sink_;
  std::string piece_;
  int64_t given_ = 0;
  bool has_begun_ = false;
};

// The plain bytes, of which there must be exactly `plain_bytes`. INVALID_ARGUMENT: malformed, or of another
// length (nothing is allocated by its word); DATA_LOSS: a piece's digest.
absl::StatusOr<std::string> UnpackBlob(absl::string_view packed, int64_t plain_bytes);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_STORE_PACKED_BLOB_H_
