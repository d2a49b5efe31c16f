// Names for the things that are counted or identified, so that one is never taken for another.
#ifndef ISTHMUS_DAEMON_BASE_IDS_H_
#define ISTHMUS_DAEMON_BASE_IDS_H_

#include <cstdint>
#include <string>
#include <tuple>

namespace isthmus {

using SiteName = std::string;  // unique among the living sites of a run
using Incarnation = int64_t;   // which life of a site; handed out by the coordinator, from 1
using RoundId = int64_t;       // from 1; the anchor of snapshot 0 is "round 0"
using FragmentId = int32_t;    // 0 until there is more than one fragment
using ViewId = int64_t;        // number of the membership view

// One life of one site.
struct SiteLife {
  SiteName name;
  Incarnation incarnation = 0;

  bool operator==(const SiteLife& o) const { return incarnation == o.incarnation && name == o.name; }
  bool operator!=(const SiteLife& o) const { return !(*this == o); }
  bool operator<(const SiteLife& o) const {
    return std::tie(name, incarnation) < std::tie(o.name, o.incarnation);
  }
};

// One attempt at an outer step of one fragment.
struct RoundKey {
  RoundId round = 0;
  FragmentId fragment = 0;

  bool operator==(const RoundKey& o) const { return round == o.round && fragment == o.fragment; }
  bool operator<(const RoundKey& o) const {
    return std::tie(round, fragment) < std::tie(o.round, o.fragment);
  }
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_BASE_IDS_H_
