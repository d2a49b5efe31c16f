#include "daemon/app/output_path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace isthmus {

absl::Status CheckOutputPath(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  const auto error = [&](int number) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": cannot be written: ", std::strerror(number)));
  };
  struct stat found = {};
  if (stat(path.c_str(), &found) == 0) {
    if (S_ISDIR(found.st_mode)) return error(EISDIR);
    return access(path.c_str(), W_OK) == 0 ? absl::OkStatus() : error(errno);
  }
  if (errno != ENOENT) return error(errno);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return error(errno);
  close(file);
  unlink(path.c_str());
  return absl::OkStatus();
}

}  // namespace isthmus
