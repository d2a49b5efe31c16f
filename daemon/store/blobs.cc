#include "daemon/store/blobs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"

namespace isthmus {
namespace {

// How many bytes of [offset, offset + bytes) there are; negative ranges are the caller's mistake.
absl::StatusOr<int64_t> Clip(int64_t size, int64_t offset, int64_t bytes) {
  if (offset < 0 || bytes < 0 || offset > size) {
    return absl::OutOfRangeError(
        absl::StrCat("read of ", bytes, " bytes at ", offset, " from a blob of ", size));
  }
  return std::min(bytes, size - offset);
}

absl::StatusOr<std::string> ReadView(absl::string_view all, int64_t offset, int64_t bytes) {
  ISTHMUS_ASSIGN_OR_RETURN(const int64_t n, Clip(static_cast<int64_t>(all.size()), offset, bytes));
  return std::string(all.substr(static_cast<size_t>(offset), static_cast<size_t>(n)));
}

}  // namespace

absl::StatusOr<std::string> MemoryBlob::Read(int64_t offset, int64_t bytes) const {
  return ReadView(*bytes_, offset, bytes);
}

absl::StatusOr<std::string> BorrowedBlob::Read(int64_t offset, int64_t bytes) const {
  return ReadView(bytes_, offset, bytes);
}

absl::StatusOr<std::shared_ptr<const BlobSource>> FileBlob::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const std::string message = absl::StrCat(path, ": ", std::strerror(errno));
    return errno == ENOENT ? absl::NotFoundError(message) : absl::UnavailableError(message);
  }
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return absl::UnavailableError(absl::StrCat(path, ": not a plain file"));
  }
  return std::shared_ptr<const BlobSource>(new FileBlob(path, fd, info.st_size));
}

FileBlob::~FileBlob() { close(fd_); }

absl::StatusOr<std::string> FileBlob::Read(int64_t offset, int64_t bytes) const {
  ISTHMUS_ASSIGN_OR_RETURN(const int64_t n, Clip(size_, offset, bytes));
  std::string out(static_cast<size_t>(n), '\0');
  int64_t have = 0;
  while (have < n) {
    const ssize_t got = pread(fd_, &out[have], static_cast<size_t>(n - have), offset + have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::DataLossError(absl::StrCat(path_, ": ", std::strerror(errno)));
    if (got == 0) {
      return absl::DataLossError(absl::StrCat(path_, ": ends at ", offset + have, " of ", size_, " bytes"));
    }
    have += got;
  }
  return out;
}

absl::StatusOr<std::string> ReadWhole(const BlobSource& blob) {
  ISTHMUS_ASSIGN_OR_RETURN(std::string bytes, blob.Read(0, blob.size()));
  if (static_cast<int64_t>(bytes.size()) != blob.size()) {
    return absl::DataLossError(absl::StrCat("blob gave ", bytes.size(), " of ", blob.size(), " bytes"));
  }
  return bytes;
}

}  // namespace isthmus
