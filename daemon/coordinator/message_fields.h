// Fields of messages as the values that the cores take.
#ifndef ISTHMUS_DAEMON_COORDINATOR_MESSAGE_FIELDS_H_
#define ISTHMUS_DAEMON_COORDINATOR_MESSAGE_FIELDS_H_

#include "daemon/base/digest.h"
#include "daemon/base/ids.h"
#include "protos/control.pb.h"

namespace isthmus {

inline SiteLife LifeOf(const Life& l) { return {l.site(), l.incarnation()}; }

// Zero when it is malformed.
inline Digest FrameDigestOf(const ContributionHeader& h) {
  return DigestFromBytes(h.frame_digest()).value_or(Digest());
}

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_COORDINATOR_MESSAGE_FIELDS_H_
