// What a command leaves behind for the shell: 0 done, 1 it failed while running, 2 it was asked for something
// impossible (a wrong flag, run file, data file or state directory).
#ifndef ISTHMUS_DAEMON_APP_EXIT_CODE_H_
#define ISTHMUS_DAEMON_APP_EXIT_CODE_H_

#include <iostream>

#include "absl/status/status.h"

namespace isthmus {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitBadInput = 2;

// INVALID_ARGUMENT, NOT_FOUND (a file), ALREADY_EXISTS and FAILED_PRECONDITION are the user's to put right;
// anything else happened to us.
inline int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
      return kExitBadInput;
    default:
      return kExitFailed;
  }
}

// Says what went wrong on standard error, in one line; returns the exit code. OK says nothing.
inline int Conclude(const absl::Status& status) {
  if (!status.ok()) std::cerr << "isthmus: " << status.message() << std::endl;
  return ExitCodeOf(status);
}

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_EXIT_CODE_H_
