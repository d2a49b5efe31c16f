// A folder that belongs to one process at a time, whose files appear whole or not at all.
//
// Not a database: files are written once, renamed into place and removed. Not thread-safe.
#ifndef ISTHMUS_DAEMON_STORE_STATE_DIRECTORY_H_
#define ISTHMUS_DAEMON_STORE_STATE_DIRECTORY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace isthmus {

// Told of every act that makes something durable, just before it happens, so that a test can die there.
using DurableHook = std::function<void(absl::string_view act)>;

class StateDirectory {
 public:
  // Takes the next piece of a file; a failure ends the writing.
  using ByteSink = std::function<absl::Status(absl::string_view piece)>;

  // Makes `path` and the `folders` in it where they are missing, locks it, and removes what a killed process
  // left half-written. FAILED_PRECONDITION: in use by another process, its number named. RESOURCE_EXHAUSTED:
  // disk full; UNAVAILABLE: read-only, not allowed, not a folder. All name the path.
  static absl::StatusOr<std::unique_ptr<StateDirectory>> Open(const std::string& path,
                                                              const std::vector<std::string>& folders,
                                                              DurableHook hook = nullptr);
  // Gives the lock back.
  ~StateDirectory();
  StateDirectory(const StateDirectory&) = delete;
  StateDirectory& operator=(const StateDirectory&) = delete;

  // Writes `name` ("folder/file" or "file") through a temporary name: fsync, rename, fsync of the folder. A
  // file of that name is replaced. RESOURCE_EXHAUSTED or UNAVAILABLE with the path, or what `fill` gave; then
  // the old file, or none, is there.
  absl::Status WriteFile(const std::string& name, const std::function<absl::Status(const ByteSink&)>& fill);
  absl::Status WriteFile(const std::string& name, absl::string_view bytes);

  // Removes a file; OK when there is none. UNAVAILABLE with the path otherwise.
  absl::Status RemoveFile(const std::string& name);

  // Names of the plain files in a folder ("" is the directory itself), sorted.
  std::vector<std::string> List(const std::string& folder) const;

  // Makes the directory's own entries durable.
  absl::Status SyncFolder(const std::string& folder);

  // Bytes of all files in it and its folders.
  int64_t Bytes() const;

  const std::string& path() const { return path_; }
  std::string PathOf(const std::string& name) const { return name.empty() ? path_ : path_ + "/" + name; }
  const DurableHook& hook() const { return hook_; }

 private:
  StateDirectory(std::string path, std::vector<std::string> folders, DurableHook hook, int lock_fd);

  std::string path_;
  std::vector<std::string> folders_;
  DurableHook hook_;
  int lock_fd_;
};

// What a failed system call on `path` means to the caller: RESOURCE_EXHAUSTED for a full disk, NOT_FOUND for
// a missing file, UNAVAILABLE otherwise.
absl::Status FileError(int error_number, absl::string_view path);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_STORE_STATE_DIRECTORY_H_
