// The frames of a commit record, as the admission rule knows them.
#ifndef ISTHMUS_DAEMON_COORDINATOR_COUNTED_FRAMES_H_
#define ISTHMUS_DAEMON_COORDINATOR_COUNTED_FRAMES_H_

#include <vector>

#include "daemon/rounds/admission.h"
#include "protos/records.pb.h"

namespace isthmus {

// Records come from the ledger or from this process: their digests are well formed.
inline std::vector<CountedFrame> CountedFramesOf(const CommitRecord& record) {
  std::vector<CountedFrame> frames;
  for (const IncludedContribution& c : record.included()) {
    frames.push_back({c.life().site(), DigestFromBytes(c.frame_digest()).value_or(Digest())});
  }
  return frames;
}

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_COORDINATOR_COUNTED_FRAMES_H_
