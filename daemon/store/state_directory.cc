#include "daemon/store/state_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"

namespace isthmus {
namespace {

constexpr char kTemporarySuffix[] = ".partial";
constexpr char kLockName[] = "lock";

// Closes on every way out.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

absl::Status WriteAll(int fd, absl::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError(errno, path);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status SyncPath(const std::string& path) {
  Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || fsync(folder.get()) != 0) return FileError(errno, path);
  return absl::OkStatus();
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Makes a folder and those above it, each durable in its parent.
absl::Status MakeFolder(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0) {
    return S_ISDIR(info.st_mode) ? absl::OkStatus() : FileError(ENOTDIR, path);
  }
  if (errno != ENOENT) return FileError(errno, path);
  const std::string parent = ParentOf(path);
  if (parent != path) ISTHMUS_RETURN_IF_ERROR(MakeFolder(parent));
  if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) return FileError(errno, path);
  return SyncPath(parent);
}

std::string HolderOf(int fd) {
  char text[32] = {};
  const ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
  const std::string holder(absl::StripAsciiWhitespace(absl::string_view(text, n > 0 ? n : 0)));
  return holder.empty() ? "unknown" : holder;
}

absl::StatusOr<int> Lock(const std::string& directory) {
  const std::string path = directory + "/" + kLockName;
  Descriptor lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (lock.get() < 0) return FileError(errno, path);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return FileError(errno, path);
    return absl::FailedPreconditionError(
        absl::StrCat("state directory ", directory, " is in use by process ", HolderOf(lock.get())));
  }
  // Overwritten before it is cut, so that a full disk does not keep us out.
  const std::string holder = absl::StrCat(getpid(), "\n");
  if (pwrite(lock.get(), holder.data(), holder.size(), 0) != static_cast<ssize_t>(holder.size()) ||
      ftruncate(lock.get(), static_cast<off_t>(holder.size())) != 0) {
    return FileError(errno, path);
  }
  return lock.Release();
}

template <typename Visit>
void VisitFiles(const std::string& folder, const Visit& visit) {
  DIR* stream = opendir(folder.c_str());
  if (stream == nullptr) return;
  while (const dirent* entry = readdir(stream)) {
    struct stat info;
    if (fstatat(dirfd(stream), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode)) {
      visit(std::string(entry->d_name), static_cast<int64_t>(info.st_size));
    }
  }
  closedir(stream);
}

}  // namespace

absl::Status FileError(int error_number, absl::string_view path) {
  const std::string message = absl::StrCat(path, ": ", std::strerror(error_number));
  if (error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG) {
    return absl::ResourceExhaustedError(message);
  }
  if (error_number == ENOENT) return absl::NotFoundError(message);
  return absl::UnavailableError(message);
}

StateDirectory::StateDirectory(std::string path, std::vector<std::string> folders, DurableHook hook,
                               int lock_fd)
    : path_(std::move(path)), folders_(std::move(folders)), hook_(std::move(hook)), lock_fd_(lock_fd) {
  if (hook_ == nullptr) hook_ = [](absl::string_view) {};
}

StateDirectory::~StateDirectory() { close(lock_fd_); }

absl::StatusOr<std::unique_ptr<StateDirectory>> StateDirectory::Open(const std::string& path,
                                                                     const std::vector<std::string>& folders,
                                                                     DurableHook hook) {
  std::string trimmed = path;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
  if (trimmed.empty()) return absl::InvalidArgumentError("the state directory's path is empty");
  ISTHMUS_RETURN_IF_ERROR(MakeFolder(trimmed));
  absl::StatusOr<int> lock = Lock(trimmed);
  if (!lock.ok()) return lock.status();
  std::unique_ptr<StateDirectory> directory(new StateDirectory(trimmed, folders, std::move(hook), *lock));
  for (const std::string& folder : folders) {
    ISTHMUS_RETURN_IF_ERROR(MakeFolder(directory->PathOf(folder)));
  }
  std::vector<std::string> all = folders;
  all.push_back("");
  for (const std::string& folder : all) {
    for (const std::string& file : directory->List(folder)) {
      if (!absl::EndsWith(file, kTemporarySuffix)) continue;
      ISTHMUS_RETURN_IF_ERROR(directory->RemoveFile(folder.empty() ? file : folder + "/" + file));
    }
  }
  return directory;
}

absl::Status StateDirectory::WriteFile(const std::string& name,
                                       const std::function<absl::Status(const ByteSink&)>& fill) {
  const std::string path = PathOf(name);
  const std::string temporary = path + kTemporarySuffix;
  const auto write = [&]() -> absl::Status {
    Descriptor file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (file.get() < 0) return FileError(errno, path);
    ISTHMUS_RETURN_IF_ERROR(fill([&](absl::string_view piece) { return WriteAll(file.get(), piece, path); }));
    hook_(absl::StrCat("fsync of ", name));
    if (fsync(file.get()) != 0) return FileError(errno, path);
    hook_(absl::StrCat("rename of ", name));
    if (rename(temporary.c_str(), path.c_str()) != 0) return FileError(errno, path);
    return absl::OkStatus();
  };
  if (absl::Status status = write(); !status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  const size_t slash = name.rfind('/');
  return SyncFolder(slash == std::string::npos ? "" : name.substr(0, slash));
}

absl::Status StateDirectory::WriteFile(const std::string& name, absl::string_view bytes) {
  return WriteFile(name, [bytes](const ByteSink& sink) { return sink(bytes); });
}

absl::Status StateDirectory::RemoveFile(const std::string& name) {
  hook_(absl::StrCat("removal of ", name));
  if (unlink(PathOf(name).c_str()) != 0 && errno != ENOENT) {
    return absl::UnavailableError(absl::StrCat(PathOf(name), ": ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

std::vector<std::string> StateDirectory::List(const std::string& folder) const {
  std::vector<std::string> names;
  VisitFiles(PathOf(folder), [&](std::string name, int64_t) { names.push_back(std::move(name)); });
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status StateDirectory::SyncFolder(const std::string& folder) {
  hook_(absl::StrCat("fsync of folder ", folder.empty() ? "." : folder));
  return SyncPath(PathOf(folder));
}

int64_t StateDirectory::Bytes() const {
  int64_t bytes = 0;
  const auto add = [&bytes](const std::string&, int64_t size) { bytes += size; };
  VisitFiles(path_, add);
  for (const std::string& folder : folders_) VisitFiles(PathOf(folder), add);
  return bytes;
}

}  // namespace isthmus
