// A commit record read as the numbers that the apply rule needs.
#ifndef ISTHMUS_DAEMON_STORE_COMMIT_RECORD_H_
#define ISTHMUS_DAEMON_STORE_COMMIT_RECORD_H_

#include <cstdint>
#include <cstring>

#include "daemon/base/digest.h"
#include "gpu/device_ops.h"
#include "protos/records.pb.h"

namespace isthmus {

inline float FloatOfBits(uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, sizeof(f));
  return f;
}

inline uint32_t BitsOfFloat(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof(bits));
  return bits;
}

// The outer optimizer's numbers, from their exact bits.
inline OuterStep OuterStepOf(const CommitRecord& record) {
  OuterStep step;
  step.form = record.is_nesterov() ? OuterForm::kNesterov : OuterForm::kPlain;
  step.rate = FloatOfBits(record.outer_rate_bits());
  step.momentum = FloatOfBits(record.outer_momentum_bits());
  return step;
}

// CommitRecord.update_codec of a dense last round that sends what the hub carries as it is.
inline constexpr char kFlushUpdate[] = "flush";

// What the state digest of the anchor after it is stamped with.
inline StateStamp StampOf(const CommitRecord& record) {
  return {record.key().round(), record.schedule_step(), record.outer_rate_bits(),
          record.outer_momentum_bits()};
}

inline StateStamp StampOf(const SnapshotInfo& info) {
  return {info.round(), info.schedule_step(), info.outer_rate_bits(), info.outer_momentum_bits()};
}

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_STORE_COMMIT_RECORD_H_
