// Small helpers around absl::Status.
#ifndef ISTHMUS_DAEMON_BASE_STATUS_H_
#define ISTHMUS_DAEMON_BASE_STATUS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace isthmus {

// The same code with "what: " before the message; OK stays OK.
inline absl::Status Annotate(const absl::Status& status, absl::string_view what) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(what, ": ", status.message()));
}

}  // namespace isthmus

// Leaves the function with the status unless it is OK.
#define ISTHMUS_RETURN_IF_ERROR(expr)                                       \
  do {                                                                      \
    if (absl::Status isthmus_s = (expr); !isthmus_s.ok()) return isthmus_s; \
  } while (false)

#define ISTHMUS_CONCAT_INNER(a, b) a##b
#define ISTHMUS_CONCAT(a, b) ISTHMUS_CONCAT_INNER(a, b)
// `lhs = value of expr`, or leaves the function with its status.
#define ISTHMUS_ASSIGN_OR_RETURN(lhs, expr) \
  ISTHMUS_ASSIGN_OR_RETURN_IMPL(ISTHMUS_CONCAT(isthmus_r_, __LINE__), lhs, expr)
#define ISTHMUS_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                                  \
  if (!tmp.ok()) return tmp.status();                 \
  lhs = std::move(tmp).value()

#endif  // ISTHMUS_DAEMON_BASE_STATUS_H_
