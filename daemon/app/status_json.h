// A run's status as JSON and back, in protobuf's own mapping. Pure.
//
// Field names are those of status.proto (they are never reused or renamed); 64-bit integers are strings and
// digests base64, as that mapping has it. Every field is present, also when it is zero.
#ifndef ISTHMUS_DAEMON_APP_STATUS_JSON_H_
#define ISTHMUS_DAEMON_APP_STATUS_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "protos/status.pb.h"

namespace isthmus {

// One object; over several lines when `is_pretty`, else on one without a newline. INVALID_ARGUMENT when a
// text field is not UTF-8.
absl::StatusOr<std::string> StatusToJson(const RunStatus& status, bool is_pretty);

// INVALID_ARGUMENT: not such an object; unknown fields are passed over (a newer coordinator may have more).
absl::StatusOr<RunStatus> StatusFromJson(absl::string_view json);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_STATUS_JSON_H_
