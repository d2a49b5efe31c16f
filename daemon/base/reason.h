// How sites and durations are written in reasons: the sentences that go with every decision.
#ifndef ISTHMUS_DAEMON_BASE_REASON_H_
#define ISTHMUS_DAEMON_BASE_REASON_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/ids.h"

namespace isthmus {

// "paris/3": name and incarnation.
inline std::string LifeText(const SiteLife& life) { return absl::StrCat(life.name, "/", life.incarnation); }

// "paris/3, oslo/1"; "nobody" when empty.
inline std::string LivesText(absl::Span<const SiteLife> lives) {
  if (lives.empty()) return "nobody";
  return absl::StrJoin(lives, ", ",
                       [](std::string* out, const SiteLife& l) { absl::StrAppend(out, LifeText(l)); });
}

// "3.2 s": seconds to a tenth.
inline std::string SecondsText(absl::Duration d) {
  return absl::StrFormat("%.1f s", absl::ToDoubleSeconds(d));
}

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_BASE_REASON_H_
