// The one door between gRPC's statuses and deadlines and ours.
#ifndef ISTHMUS_DAEMON_RPC_STATUS_CONVERSION_H_
#define ISTHMUS_DAEMON_RPC_STATUS_CONVERSION_H_

#include <grpc/support/time.h>
#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace isthmus {

// gRPC cuts longer texts off in the middle of nowhere, or refuses them as headers.
inline constexpr size_t kLongestStatusText = 1024;

// The codes are the same numbers.
inline absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

inline grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message().substr(0, kLongestStatusText)));
}

// `left` from now, as gRPC counts.
inline gpr_timespec GrpcDeadline(absl::Duration left) {
  left = std::max(absl::ZeroDuration(), std::min(left, absl::Hours(24 * 365)));
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(absl::ToInt64Nanoseconds(left), GPR_TIMESPAN));
}

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_RPC_STATUS_CONVERSION_H_
