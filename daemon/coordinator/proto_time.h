// absl times as protobuf's, and back.
#ifndef ISTHMUS_DAEMON_COORDINATOR_PROTO_TIME_H_
#define ISTHMUS_DAEMON_COORDINATOR_PROTO_TIME_H_

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include "absl/time/time.h"

namespace isthmus {

inline absl::Duration FromProto(const google::protobuf::Duration& d) {
  return absl::Seconds(d.seconds()) + absl::Nanoseconds(d.nanos());
}

inline google::protobuf::Timestamp ToProto(absl::Time t) {
  google::protobuf::Timestamp out;
  const int64_t seconds = absl::ToUnixSeconds(t);
  out.set_seconds(seconds);
  out.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(t - absl::FromUnixSeconds(seconds))));
  return out;
}

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_COORDINATOR_PROTO_TIME_H_
