// Blob sources over memory and over an open file, and the helper that reads one whole.
#ifndef ISTHMUS_DAEMON_STORE_BLOBS_H_
#define ISTHMUS_DAEMON_STORE_BLOBS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/exchange/transport.h"

namespace isthmus {

// Bytes in memory, shared with whoever else holds them. Thread-safe.
class MemoryBlob : public BlobSource {
 public:
  explicit MemoryBlob(SharedBytes bytes) : bytes_(std::move(bytes)) {}
  explicit MemoryBlob(std::string bytes) : bytes_(std::make_shared<const std::string>(std::move(bytes))) {}

  int64_t size() const override { return static_cast<int64_t>(bytes_->size()); }
  absl::StatusOr<std::string> Read(int64_t offset, int64_t bytes) const override;

 private:
  SharedBytes bytes_;
};

// Bytes that somebody else keeps alive for as long as this lives.
class BorrowedBlob : public BlobSource {
 public:
  explicit BorrowedBlob(absl::string_view bytes) : bytes_(bytes) {}

  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  absl::StatusOr<std::string> Read(int64_t offset, int64_t bytes) const override;

 private:
  absl::string_view bytes_;
};

// An open file; stays readable after the file's name is gone.
class FileBlob : public BlobSource {
 public:
  // NOT_FOUND: no such file; UNAVAILABLE: the file cannot be opened. Both name the path.
  static absl::StatusOr<std::shared_ptr<const BlobSource>> Open(const std::string& path);
  ~FileBlob() override;
  FileBlob(const FileBlob&) = delete;
  FileBlob& operator=(const FileBlob&) = delete;

  int64_t size() const override { return size_; }
  // DATA_LOSS when the file became shorter than it was or cannot be read.
  absl::StatusOr<std::string> Read(int64_t offset, int64_t bytes) const override;

 private:
  FileBlob(std::string path, int fd, int64_t size) : path_(std::move(path)), fd_(fd), size_(size) {}

  std::string path_;
  int fd_;
  int64_t size_;
};

// All of a blob in one string; the caller has judged its size.
absl::StatusOr<std::string> ReadWhole(const BlobSource& blob);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_STORE_BLOBS_H_
