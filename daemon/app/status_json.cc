#include "daemon/app/status_json.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"

namespace isthmus {

absl::StatusOr<std::string> StatusToJson(const RunStatus& status, bool is_pretty) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  options.add_whitespace = is_pretty;
  std::string json;
  const auto result = google::protobuf::util::MessageToJsonString(status, &json, options);
  if (!result.ok()) return absl::InvalidArgumentError(absl::StrCat("status as JSON: ", result.ToString()));
  return json;
}

absl::StatusOr<RunStatus> StatusFromJson(absl::string_view json) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  RunStatus status;
  const auto result =
      google::protobuf::util::JsonStringToMessage({json.data(), json.size()}, &status, options);
  if (!result.ok()) return absl::InvalidArgumentError(absl::StrCat("status from JSON: ", result.ToString()));
  return status;
}

}  // namespace isthmus
