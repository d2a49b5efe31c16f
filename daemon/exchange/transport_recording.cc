#include "daemon/exchange/transport_recording.h"

#include <algorithm>
#include <cstring>

#include "daemon/base/digest.h"
#include "daemon/base/random.h"

namespace isthmus {

std::string MakeBytes(int64_t bytes, uint64_t seed) {
  std::string made(bytes, '\0');
  for (int64_t i = 0; i < bytes; i += 8) {
    const uint64_t word = RandomAt(seed, 0, i);
    std::memcpy(&made[i], &word, std::min<int64_t>(8, bytes - i));
  }
  return made;
}

ContributionHeader HeaderOf(const std::string& frame, const std::string& site, int64_t round) {
  ContributionHeader header;
  header.set_run_id("run-1");
  header.mutable_key()->set_round(round);
  header.mutable_life()->set_site(site);
  header.mutable_life()->set_incarnation(1);
  header.set_frame_bytes(frame.size());
  header.set_frame_digest(DigestOf(frame).ToBytes());
  return header;
}

}  // namespace isthmus
