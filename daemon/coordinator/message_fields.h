// Fields of messages as the values that the cores take.
#ifndef ISTHMUS_DAEMON_COORDINATOR_MESSAGE_FIELDS_H_
#define ISTHMUS_DAEMON_COORDINATOR_MESSAGE_FIELDS_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/base/digest.h"
#include "daemon/base/ids.h"
#include "protos/control.pb.h"

namespace isthmus {

inline SiteLife LifeOf(const Life& l) { return {l.site(), l.incarnation()}; }

// Zero when it is malformed.
inline Digest FrameDigestOf(const ContributionHeader& h) {
  return DigestFromBytes(h.frame_digest()).value_or(Digest());
}

inline Life MessageOf(const SiteLife& life) {
  Life l;
  l.set_site(life.name);
  l.set_incarnation(life.incarnation);
  return l;
}

// Why a site that is missing in the record missed its round.
inline std::string MissReason(const CommitRecord& record) {
  return absl::StrCat("round ", record.key().round(), " closed without it: ", record.reason());
}
inline std::string MissReason(const AbortRecord& record) {
  return absl::StrCat("round ", record.key().round(), " aborted: ", record.reason());
}

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_COORDINATOR_MESSAGE_FIELDS_H_
